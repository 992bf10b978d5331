"""A message of Anthropic's read as a Reply: tolerant of what servers leave out, strict about what it claims."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.encoding import dump_text
from mcptrials.errors import ProviderError
from mcptrials.events import CallAsked, Usage
from mcptrials.models.anthropic_body import is_tool_use
from mcptrials.models.call_id import CallIds
from mcptrials.models.reply_json import count, joined, mapping, objects, word
from mcptrials.protocols import Message, Reply, ReplyStop

_STOPS: Mapping[str, ReplyStop] = {
    "refusal": "refused",
    "max_tokens": "length",
    "model_context_window_exceeded": "context_overflow",
    "pause_turn": "paused",
}
"""What else ends a reply (end_turn, tool_use, stop_sequence) is told by what the reply holds."""


def read_reply(raw: Any, messages: Sequence[Message]) -> Reply:
    """The reply in a message.

    Args:
        messages: the conversation that it answers; ids of earlier calls are not used again.

    Raises:
        ProviderError: it is no message, or not of the API's form.
    """
    if mapping(raw).get("content") is None:
        raise ProviderError("http", "the provider's reply has no content", status=200, retryable=True)
    content = objects(raw["content"], "the content")
    asked = [block for block in content if mapping(block).get("type") == "tool_use"]
    ids = CallIds(messages)
    calls = tuple(_call(block, ids, index) for index, block in enumerate(asked) if is_tool_use(block))
    model, reason = raw.get("model"), word(raw.get("stop_reason"), "stop_reason")
    return Reply(
        text=_text(content) or _why_refused(raw),
        reasoning=joined(content, "thinking") or None,
        calls=calls,
        stop=_stop(reason, calls, malformed=len(calls) < len(asked)),
        usage=_usage(raw.get("usage")),
        model=model if isinstance(model, str) else None,
        native=content,
        raw=raw,
    )


def _call(block: Mapping[str, Any], ids: CallIds, index: int) -> CallAsked:
    """A call; its arguments come as a value, so their text is ours: the same keys in the same order, compact."""
    given = block.get("input")
    arguments = given if isinstance(given, str) else "" if given is None else dump_text(given)
    return CallAsked(id=ids.take(block.get("id"), index), name=block["name"], raw_arguments=arguments)


def _text(content: Sequence[Any]) -> str | None:
    return joined([block for block in content if mapping(block).get("type") == "text"], "text")


def _why_refused(raw: Mapping[str, Any]) -> str | None:
    why = mapping(raw.get("stop_details")).get("explanation")
    return why if raw.get("stop_reason") == "refusal" and isinstance(why, str) else None


def _stop(reason: str | None, calls: Sequence[CallAsked], *, malformed: bool) -> ReplyStop:
    """Why the model stopped: what the message holds counts more than what the provider says."""
    if reason is not None and reason in _STOPS and not (reason == "pause_turn" and calls):
        return _STOPS[reason]
    if malformed or (reason == "tool_use" and not calls):
        return "malformed_call"
    return "calls" if calls else "answer"


def _usage(usage: Any) -> Usage | None:
    """The tokens; Anthropic counts those that the cache took part in apart from the others."""
    if not isinstance(usage, Mapping):
        return None
    cached, written = (count(usage, f"cache_{which}_input_tokens") for which in ("read", "creation"))
    fresh = count(usage, "input_tokens")
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        output_tokens=count(usage, "output_tokens"),
        cached_input_tokens=cached,
        reasoning_tokens=count(usage.get("output_tokens_details"), "thinking_tokens"),
    )
