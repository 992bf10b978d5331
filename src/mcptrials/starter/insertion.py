"""Insertion: new servers in a project file that exists, with every other character as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.events import AliasEvent, Event, MappingEndEvent, ScalarEvent, SequenceEndEvent
from ruamel.yaml.nodes import MappingNode

from mcptrials.errors import UsageError
from mcptrials.source import Source, yaml_source
from mcptrials.starter.yaml_lines import indented, scalar, value

_BOM = "\ufeff"


@dataclass(frozen=True)
class _Servers:
    """Where the value of `servers` stands."""

    end: int
    """Index after its last key or value."""
    column: int
    flow: bool


def with_servers(path: Path, text: str, lines: Mapping[str, Sequence[str]], values: Mapping[str, Any]) -> str:
    """The file's text with more servers at the end of `servers`.

    Args:
        lines: of each server, from column 0.
        values: the same as data, for a file that has its servers between braces.

    Raises:
        UsageError: the file is written in a way that cannot be added to.
    """
    bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    source = yaml_source(path, body)
    found = _find(body)
    if found is None:
        raise _refused(source)
    if found.flow:
        added = ", ".join(f"{scalar(name)}: {value(each)}" for name, each in values.items())
        new = f"{body[: found.end]}, {added}{body[found.end :]}"
    else:
        new = _in_block(body, found, [line for each in lines.values() for line in each])
    if not _is_only_added(source, new, list(values)):
        raise _refused(source)
    return bom + new


def _in_block(body: str, found: _Servers, lines: Sequence[str]) -> str:
    newline = "\r\n" if "\r\n" in body else "\n"
    at_line_start = body[: found.end].endswith("\n")
    line_end = found.end if at_line_start else body.find("\n", found.end) + 1 or len(body)
    line_end += _own_comments(body[line_end:], found.column)
    before = body[:line_end]
    if not before.endswith("\n"):
        before += newline
    return before + newline.join([*indented(lines, found.column), ""]) + body[line_end:]


def _own_comments(text: str, column: int) -> int:
    """How far the comments go that are indented as part of the last server."""
    length = end = 0
    for line in text.split("\n"):
        said = line.lstrip(" ")
        if said.strip() and not (said.startswith("#") and len(line) - len(said) > column):
            break
        length += len(line) + 1
        end = length if said.strip() else end
    return min(end, len(text))


def _refused(source: Source) -> UsageError:
    what = "'servers' is written in a way that nothing can be added to safely"
    return UsageError(what, where=source.where(("servers",)), hint="write it as a block, one server below the other")


def _is_only_added(source: Source, text: str, names: Sequence[str]) -> bool:
    """Whether the new text says what the old one said, and the new servers."""
    try:
        after = yaml_source(source.path, text).value
    except UsageError:
        return False
    servers = after.get("servers") if isinstance(after, dict) else None
    if not isinstance(servers, dict) or list(servers)[-len(names) :] != list(names):
        return False
    old = {name: each for name, each in servers.items() if name not in names}
    return bool(after | {"servers": old} == source.value)


def _find(text: str) -> _Servers | None:
    """The mapping at the key `servers` of the document."""
    reader = YAML(typ="safe", pure=True)
    root = reader.compose(text)
    pairs = root.value if isinstance(root, MappingNode) else []
    node = next((item for key, item in pairs if key.value == "servers"), None)
    if not isinstance(node, MappingNode) or not node.value:
        return None
    flow, start, stop = bool(node.flow_style), node.start_mark.index, node.end_mark.index
    stop -= flow  # its own closing brace
    ends = [_written_end(event) for event in reader.parse(text) if event.start_mark.index >= start]
    return _Servers(max(end for end in ends if end <= stop), node.value[0][0].start_mark.column, flow)


def _written_end(event: Event) -> int:
    """The index after what an event wrote: blocks end with their last part."""
    if isinstance(event, ScalarEvent | AliasEvent):
        return int(event.end_mark.index)
    if isinstance(event, MappingEndEvent | SequenceEndEvent) and event.end_mark.index > event.start_mark.index:
        return int(event.end_mark.index)
    return 0
