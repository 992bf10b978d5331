"""A response of OpenAI's Responses API read as a Reply: tolerant of what is left out, strict about what it claims."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.encoding import dump_text
from mcptrials.errors import ProviderError
from mcptrials.events import CallAsked, Usage
from mcptrials.models.call_id import CallIds
from mcptrials.models.reply_json import count, joined, mapping, objects, word
from mcptrials.models.responses_body import is_call
from mcptrials.protocols import Message, Reply, ReplyStop

_NOT_ENDED = frozenset({"failed", "cancelled", "queued", "in_progress"})


def read_reply(raw: Any, messages: Sequence[Message]) -> Reply:
    """The reply in a response.

    Args:
        messages: the conversation that it answers; ids of earlier calls are not used again.

    Raises:
        ProviderError: there is no output in it, it did not come to an end, or it is not of the API's form.
    """
    status = word(mapping(raw).get("status"), "status")
    if mapping(raw).get("output") is None or status in _NOT_ENDED:
        message = f"the provider's reply has no output, status {status!r}"
        raise ProviderError("http", message, status=200, retryable=True)
    output = objects(raw["output"], "the output")
    asked = [item for item in output if mapping(item).get("type") == "function_call"]
    ids = CallIds(messages)
    calls = tuple(_call(item, ids, index) for index, item in enumerate(asked) if is_call(item))
    content = _parts(output, "message", "content")
    refusal = joined(content, "refusal")
    model = raw.get("model")
    return Reply(
        text=joined(content, "text") or refusal,
        reasoning=_reasoning(output),
        calls=calls,
        stop=_stop(raw, calls, malformed=len(calls) < len(asked), refused=bool(refusal)),
        usage=_usage(raw.get("usage")),
        model=model if isinstance(model, str) else None,
        native=output,
        raw=raw,
    )


def _call(item: Mapping[str, Any], ids: CallIds, index: int) -> CallAsked:
    given = item.get("arguments")
    arguments = given if isinstance(given, str) else "" if given is None else dump_text(given)
    return CallAsked(id=ids.take(item.get("call_id"), index), name=item["name"], raw_arguments=arguments)


def _parts(output: Sequence[Any], kind: str, key: str) -> list[Any]:
    """The parts under a key of all items of a kind."""
    found = [mapping(item).get(key) for item in output if mapping(item).get("type") == kind]
    return [part for parts in found for part in objects(parts, f"{key} of a {kind}")]


def _reasoning(output: Sequence[Any]) -> str | None:
    """The reasoning that can be read: its summary, or its text where a server gives that."""
    return joined(_parts(output, "reasoning", "summary"), "text") or joined(
        _parts(output, "reasoning", "content"), "text"
    )


def _stop(raw: Mapping[str, Any], calls: Sequence[CallAsked], *, malformed: bool, refused: bool) -> ReplyStop:
    reason = mapping(raw.get("incomplete_details")).get("reason")
    if refused or reason == "content_filter":
        return "refused"
    if raw.get("status") == "incomplete":
        return "length"
    if malformed:
        return "malformed_call"
    return "calls" if calls else "answer"


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    return Usage(
        input_tokens=count(usage, "input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        cached_input_tokens=count(usage.get("input_tokens_details"), "cached_tokens"),
        reasoning_tokens=count(usage.get("output_tokens_details"), "reasoning_tokens"),
    )
