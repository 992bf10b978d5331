"""The request body of OpenAI's Responses API, as plain JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.events import ToolShown
from mcptrials.models.call_id import with_ids
from mcptrials.protocols import Assistant, Message, System, ToolOutput, User


def input_items(messages: Sequence[Message]) -> list[Any]:
    """The conversation as input items; the model's own, its reasoning among them, stand as they came."""
    return [item for message in messages for item in _items(message)]


def responses_tools(tools: Sequence[ToolShown]) -> list[dict[str, Any]]:
    """The tools in the flat form; descriptions and schemas stand as the server sent them.

    `strict` is false throughout: left out it is true here, and then the API rewrites the schemas.
    """
    return [_tool(tool) for tool in tools]


def is_call(item: Any) -> bool:
    """Whether an output item is a usable call."""
    if not isinstance(item, Mapping) or item.get("type") != "function_call":
        return False
    return isinstance(item.get("name"), str) and item["name"] != ""


def _items(message: Message) -> list[Any]:
    match message:
        case System(text=text):
            return [{"role": "system", "content": text}]
        case User(text=text):
            return [{"role": "user", "content": text}]
        case ToolOutput(call_id=call_id, text=text):
            return [{"type": "function_call_output", "call_id": call_id, "output": text}]
        case Assistant(reply=reply):
            native = reply.native if isinstance(reply.native, list) else []
            return with_ids(native, reply, "call_id", is_call)


def _tool(tool: ToolShown) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": "function", "name": tool.shown_name}
    if tool.description is not None:
        shown["description"] = tool.description
    return shown | {"parameters": tool.input_schema, "strict": False}
