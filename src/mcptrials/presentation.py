"""What the model is shown: tool names, tool lists, results and errors, as pure rewrites that name themselves.

The model sees what the server sent unless a named policy here changed it; each change is returned as a
`PresentationChange` to be recorded.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcptrials.encoding import dump_text
from mcptrials.events import ToolShown
from mcptrials.frozen import Frozen

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names that every provider takes for a function."""

RawTool = Mapping[str, Any]
"""A tool as the server listed it: name, description, inputSchema, annotations ..."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a policy made, before it has a time."""

    policy: str
    subject: str
    before: Any = None
    after: Any = None


class ToolFilter(Frozen):
    """Which of a server's tools the model sees."""

    allow: tuple[str, ...] | None = None
    """Only these; None is all."""
    hide: tuple[str, ...] = ()
    writes: Literal["allowed", "denied"] = "allowed"
    """denied: only tools that declare `readOnlyHint: true`, or that `allow` names."""

    def shows(self, tool: RawTool) -> bool:
        name = tool["name"]
        if name in self.hide or (self.allow is not None and name not in self.allow):
            return False
        allowed = self.allow is not None and name in self.allow
        return self.writes == "allowed" or allowed or read_only(tool)


def read_only(tool: RawTool) -> bool:
    """Whether the tool declares that it changes nothing; unset means that it may (spec default false)."""
    annotations = tool.get("annotations")
    return isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True


def present_tools(
    listings: Mapping[str, Sequence[RawTool]], filters: Mapping[str, ToolFilter]
) -> tuple[tuple[ToolShown, ...], tuple[Change, ...]]:
    """The tools that the model sees, in server and list order, and what was changed for it.

    Names go through a reversible map: bare where that is unique and valid for every provider, otherwise prefixed by
    the server or rewritten, with a hash where cutting or replacing could make two names collide.
    """
    shown, changes = [], []
    visible = [(server, tool) for server, tools in listings.items() for tool in tools]
    count: dict[str, int] = {}
    for _, tool in visible:
        count[tool["name"]] = count.get(tool["name"], 0) + 1
    for server, tool in visible:
        name = tool["name"]
        if not filters.get(server, ToolFilter()).shows(tool):
            changes.append(Change("tool_filter", f"{server}/{name}", name, None))
            continue
        wanted = name if count[name] == 1 else f"{server}__{name}"
        shown_name = provider_name(wanted)
        if shown_name != name:
            changes.append(Change("tool_name", f"{server}/{name}", name, shown_name))
        description = tool.get("description")
        shown.append(
            ToolShown(
                shown_name=shown_name,
                server=server,
                tool=name,
                description=description if isinstance(description, str) else None,
                input_schema=tool.get("inputSchema"),
            )
        )
    return tuple(shown), tuple(changes)


def provider_name(name: str) -> str:
    """`name` if every provider takes it; else rewritten, with 8 hex digits of its hash so that none collide."""
    if NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', name)[:55]}_{digest}"


def present_result(result: Any) -> tuple[str, tuple[Change, ...]]:
    """The text that a model without native content blocks sees of a raw `tools/call` result.

    Text blocks stand as they are, one per line. A block of another kind becomes a placeholder with its type and size
    (never base64 as text); without any block the structured content is shown as JSON. An `isError` result is marked
    unless its text says so itself, since chat APIs have no field for it.
    """
    if not isinstance(result, Mapping):
        return dump_text(result), (Change("malformed_result", "result"),)
    changes: list[Change] = []
    blocks = result.get("content")
    parts = [_block_text(block, changes) for block in blocks] if isinstance(blocks, list) else []
    text = "\n".join(parts)
    if not parts and "structuredContent" in result:
        text = dump_text(result["structuredContent"])
        changes.append(Change("structured_content", "result", None, text))
    if result.get("isError") is True and not text.lstrip().lower().startswith("error"):
        changes.append(Change("mark_error", "result", text, f"Error: {text}"))
        text = f"Error: {text}"
    return text, tuple(changes)


def _block_text(block: Any, changes: list[Change]) -> str:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    if kind == "resource" and isinstance(block.get("resource"), Mapping) and "text" in block["resource"]:
        return str(block["resource"]["text"])
    placeholder = _placeholder(block, kind)
    changes.append(Change("placeholder", str(kind), None, placeholder))
    return placeholder


def _placeholder(block: Any, kind: Any) -> str:
    if not isinstance(block, Mapping):
        return f"[content of unknown form: {json.dumps(block)[:80]}]"
    resource = block.get("resource")
    inner = resource if isinstance(resource, Mapping) else block
    facts = [str(inner[key]) for key in ("mimeType", "uri", "name") if isinstance(inner.get(key), str)]
    data = inner.get("data", inner.get("blob"))
    if isinstance(data, str):
        facts.append(f"{len(data) * 3 // 4} bytes")
    return f"[{kind}: {', '.join(facts)}]" if facts else f"[{kind}]"


def present_protocol_error(error: Any) -> str:
    """What the model sees of a JSON-RPC error (the spec: clients MAY show it)."""
    code = error.get("code") if isinstance(error, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else error
    return f"MCP error {code}: {message}"
