"""The request body of OpenAI's chat completions, as plain JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.events import ToolShown
from mcptrials.models.call_id import with_ids
from mcptrials.protocols import Assistant, Message, Reply, System, ToolOutput, User

REASONING_KEYS = frozenset({"reasoning_content", "reasoning"})
_NEVER_SENT = frozenset({"annotations"})
_SENT_UNLESS_NULL = frozenset({"refusal", "audio", "function_call", "tool_calls"})


def chat_messages(messages: Sequence[Message], *, with_reasoning: bool = False) -> list[dict[str, Any]]:
    """The conversation in OpenAI's form.

    Args:
        with_reasoning: replay the model's reasoning too; most providers refuse it, a few insist on it.
    """
    return [_message(message, with_reasoning) for message in messages]


def chat_tools(tools: Sequence[ToolShown]) -> list[dict[str, Any]]:
    """The tools in OpenAI's form; descriptions and schemas stand as the server sent them."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _message(message: Message, with_reasoning: bool) -> dict[str, Any]:
    match message:
        case System(text=text):
            return {"role": "system", "content": text}
        case User(text=text):
            return {"role": "user", "content": text}
        case ToolOutput(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case Assistant(reply=reply):
            return _replayed(reply, with_reasoning)


def _replayed(reply: Reply, with_reasoning: bool) -> dict[str, Any]:
    """The provider's own message without what it only sends and never takes."""
    native: Mapping[str, Any] = reply.native
    message = {"role": "assistant"} | {
        key: value
        for key, value in native.items()
        if key not in _NEVER_SENT
        and (with_reasoning or key not in REASONING_KEYS)
        and not (key in _SENT_UNLESS_NULL and not value)
    }
    if "tool_calls" in message:
        message["tool_calls"] = with_ids(message["tool_calls"], reply, "id", lambda _: True)
    elif message.get("content") is None:
        message["content"] = ""  # null is valid beside calls only
    return message


def _function(tool: ToolShown) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.shown_name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.input_schema is not None:
        function["parameters"] = tool.input_schema
    return function
