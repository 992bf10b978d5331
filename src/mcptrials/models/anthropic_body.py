"""The request body of Anthropic's Messages API, as plain JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.events import ToolShown
from mcptrials.models.call_id import with_ids
from mcptrials.models.tool_content import tool_content
from mcptrials.protocols import Assistant, Message, Reply, System, ToolOutput, User

Block = dict[str, Any]
_CACHED = {"cache_control": {"type": "ephemeral"}}


def system_blocks(messages: Sequence[Message]) -> list[Block]:
    """The system prompt, which stands outside the conversation."""
    return [
        {"type": "text", "text": message.text} for message in messages if isinstance(message, System) and message.text
    ]


def turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation, one message per turn: all results of a turn's calls stand in one message, in order."""
    found: list[dict[str, Any]] = []
    for message in messages:
        role, blocks = ("assistant", _replayed(message.reply)) if isinstance(message, Assistant) else _asked(message)
        if blocks and found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": role, "content": blocks})
    return found


def anthropic_tools(tools: Sequence[ToolShown]) -> list[dict[str, Any]]:
    """The tools in Anthropic's form; descriptions and schemas stand as the server sent them."""
    return [_tool(tool) for tool in tools]


def with_cache_marks(body: dict[str, Any]) -> dict[str, Any]:
    """The body with an end of the cached prefix after the tools, the system prompt and the conversation so far."""
    marked = dict(body)
    for key in ("tools", "system"):
        if marked.get(key):
            marked[key] = _marked(marked[key])
    asked = [index for index, turn in enumerate(body["messages"]) if turn["role"] == "user"]
    if asked:
        marked["messages"] = list(body["messages"])
        last = marked["messages"][asked[-1]]
        marked["messages"][asked[-1]] = {**last, "content": _marked(last["content"])}
    return marked


def native_images(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many images of tool results a conversation holds."""
    results = [block for turn in messages if turn["role"] == "user" for block in turn["content"]]
    return sum(part.get("type") == "image" for result in results for part in result.get("content", ()))


def _asked(message: Message) -> tuple[str, list[Block]]:
    if isinstance(message, ToolOutput):
        return "user", [_result(message)]
    # An empty text block is refused, and says nothing.
    return "user", [{"type": "text", "text": message.text}] if isinstance(message, User) and message.text else []


def _result(output: ToolOutput) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": output.call_id}
    if content := tool_content(output):
        block["content"] = content
    if output.is_error:
        block["is_error"] = True
    return block


def _replayed(reply: Reply) -> list[Block]:
    """The model's own content, thinking and its signatures included: changed in any way, it would be refused."""
    native = reply.native if isinstance(reply.native, list) else []
    return with_ids(native, reply, "id", is_tool_use)


def is_tool_use(block: Any) -> bool:
    """Whether a block is a usable call."""
    if not isinstance(block, Mapping) or block.get("type") != "tool_use":
        return False
    return isinstance(block.get("name"), str) and block["name"] != ""


def _tool(tool: ToolShown) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": tool.shown_name}
    if tool.description is not None:
        shown["description"] = tool.description
    shown["input_schema"] = tool.input_schema
    return shown


def _marked(blocks: Sequence[Block]) -> list[Block]:
    return [*blocks[:-1], {**blocks[-1], **_CACHED}]
