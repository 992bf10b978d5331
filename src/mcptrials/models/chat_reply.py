"""A chat completion read as a Reply: tolerant of what servers leave out, strict about what it claims."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from mcptrials.encoding import dump_text
from mcptrials.errors import ProviderError
from mcptrials.events import CallAsked, Usage
from mcptrials.protocols import Assistant, Message, Reply, ReplyStop


def read_reply(raw: Any, messages: Sequence[Message]) -> Reply:
    """The reply in a chat completion.

    Args:
        messages: the conversation that it answers; ids of earlier calls are not used again.

    Raises:
        ProviderError: there is no choice in it.
    """
    choice = _choice(raw)
    message = _mapping(choice.get("message"))
    replies = [item.reply for item in messages if isinstance(item, Assistant)]
    native_calls = message.get("tool_calls") or []
    calls = _calls(native_calls, {call.id for reply in replies for call in reply.calls}, len(replies))
    text, refused = _content(message)
    model = raw.get("model")
    return Reply(
        text=text,
        reasoning=_first_text(message, "reasoning_content", "reasoning"),
        calls=calls,
        stop=_stop(choice.get("finish_reason"), calls, malformed=len(calls) < len(native_calls), refused=refused),
        usage=_usage(raw.get("usage")),
        model=model if isinstance(model, str) else None,
        native=message,
        raw=raw,
    )


def _choice(raw: Any) -> Mapping[str, Any]:
    choices = _mapping(raw).get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise ProviderError("http", "the provider's reply has no choices", status=200, retryable=True)
    return choices[0]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _calls(native: Sequence[Any], used: Set[str], turn: int) -> tuple[CallAsked, ...]:
    """The calls that have a name. One without an id, or with one used before, gets an id of ours."""
    calls: list[CallAsked] = []
    for index, call in enumerate(native):
        function = _mapping(_mapping(call).get("function"))
        name, call_id, arguments = function.get("name"), call.get("id"), function.get("arguments")
        if not isinstance(name, str) or not name:
            continue
        if not isinstance(call_id, str) or not call_id or call_id in used | {other.id for other in calls}:
            call_id = f"call_{turn}_{index}"
        calls.append(CallAsked(id=call_id, name=name, raw_arguments=_raw_arguments(arguments)))
    return tuple(calls)


def _raw_arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dump_text(arguments)


def _content(message: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The text, from a string or from parts, and whether the model refused."""
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):
        parts = [_mapping(part) for part in content]
        refusal = refusal or "".join(str(part["refusal"]) for part in parts if part.get("refusal"))
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        content = "".join(texts) if texts else None
    text = content if isinstance(content, str) else None
    return (text or str(refusal), True) if refusal else (text, False)


def _first_text(message: Mapping[str, Any], *keys: str) -> str | None:
    texts = (message.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), None)


def _stop(finish_reason: Any, calls: Sequence[CallAsked], *, malformed: bool, refused: bool) -> ReplyStop:
    """Why the model stopped: what the message holds counts more than what the provider says."""
    if refused or finish_reason == "content_filter":
        return "refused"
    if finish_reason == "length":
        return "length"
    if malformed or (finish_reason in {"tool_calls", "function_call"} and not calls):
        return "malformed_call"
    return "calls" if calls else "answer"


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_input_tokens=_count(prompt, "cached_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
    )


def _count(counts: Any, key: str) -> int | None:
    value = _mapping(counts).get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
