"""A chat completion read as a Reply: tolerant of what servers leave out, strict about what it claims."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.encoding import dump_text
from mcptrials.errors import ProviderError
from mcptrials.events import CallAsked, Usage
from mcptrials.models.call_id import CallIds
from mcptrials.models.reply_json import count, joined, mapping, misshapen, objects, word
from mcptrials.protocols import Message, Reply, ReplyStop


def read_reply(raw: Any, messages: Sequence[Message]) -> Reply:
    """The reply in a chat completion.

    Args:
        messages: the conversation that it answers; ids of earlier calls are not used again.

    Raises:
        ProviderError: there is no choice in it, or it is not of the API's form.
    """
    choice = _choice(raw)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise misshapen("the message", message)
    native_calls = objects(message.get("tool_calls") or None, "tool_calls")
    finish_reason = word(choice.get("finish_reason"), "finish_reason")
    calls = _calls(native_calls, CallIds(messages))
    text, refused = _content(message)
    model = raw.get("model")
    return Reply(
        text=text,
        reasoning=_first_text(message, "reasoning_content", "reasoning"),
        calls=calls,
        stop=_stop(finish_reason, calls, malformed=len(calls) < len(native_calls), refused=refused),
        usage=_usage(raw.get("usage")),
        model=model if isinstance(model, str) else None,
        native=message,
        raw=raw,
    )


def _choice(raw: Any) -> Mapping[str, Any]:
    choices = mapping(raw).get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise ProviderError("http", "the provider's reply has no choices", status=200, retryable=True)
    return choices[0]


def _calls(native: Sequence[Any], ids: CallIds) -> tuple[CallAsked, ...]:
    """The calls that have a name."""
    calls: list[CallAsked] = []
    for index, call in enumerate(native):
        function = mapping(mapping(call).get("function"))
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str) and name:
            calls.append(
                CallAsked(id=ids.take(call.get("id"), index), name=name, raw_arguments=_raw_arguments(arguments))
            )
    return tuple(calls)


def _raw_arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dump_text(arguments)


def _content(message: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The text, from a string or from parts, and whether the model refused."""
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):
        refusal = refusal or joined(objects(content, "the content"), "refusal")
        content = joined(content, "text")
    text = word(content, "the content")
    return (text or str(refusal), True) if refusal else (text, False)


def _first_text(message: Mapping[str, Any], *keys: str) -> str | None:
    texts = (message.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), None)


def _stop(finish_reason: str | None, calls: Sequence[CallAsked], *, malformed: bool, refused: bool) -> ReplyStop:
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
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        cached_input_tokens=count(prompt, "cached_tokens"),
        reasoning_tokens=count(completion, "reasoning_tokens"),
    )
