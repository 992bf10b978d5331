"""What models are told of the tools on two sides, and where that differs: the likely cause of other results."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from mcptrials.comparison.side import Side
from mcptrials.overrides import NOTHING, Overrides
from mcptrials.overrides import told as told_of

MAX_CHANGES = 200
"""Of one comparison; more are counted."""
_KEYS = ("description", "inputSchema", "title", "annotations", "outputSchema")


def tool_changes(a: Side, b: Side) -> dict[str, Any]:
    """Differences of the tool lists as the models saw them, by server, tool and place."""
    if not (a.tool_lists and b.tool_lists):
        return {"known": False, "changes": [], "left_out": 0}
    mine, other = _told(a), _told(b)
    found = [
        {"subject": subject, "path": path, "before": before, "after": after}
        for subject in dict.fromkeys([*mine, *other])
        for path, before, after in _changes(mine.get(subject), other.get(subject))
    ]
    return {"known": True, "changes": found[:MAX_CHANGES], "left_out": max(0, len(found) - MAX_CHANGES)}


def _told(side: Side) -> dict[str, dict[str, Any]]:
    overrides, told = _overrides(side), {}
    for server, facts in side.tool_lists.items():
        instructions = overrides.instructions_of(server, facts.get("instructions"))
        told[server] = {"version": facts.get("version"), "instructions": instructions}
        tools = facts.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if _is_shown(overrides, server, tool):
                told[f"{server}/{tool['name']}"] = _tool(overrides, server, tool)
    return told


def _is_shown(overrides: Overrides, server: str, tool: Any) -> bool:
    named = isinstance(tool, Mapping) and isinstance(tool.get("name"), str)
    return named and not overrides.hides(server, tool["name"])


def _tool(overrides: Overrides, server: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    new, _ = told_of(overrides, server, tool)
    named = {"name": overrides.name_of(server, tool["name"]), "naming": overrides.naming or "bare"}
    return named | {key: new[key] for key in _KEYS if key in new}


def _overrides(side: Side) -> Overrides:
    stated = side.stated("overrides")
    own = stated.get(side.arm.variant) if isinstance(stated, Mapping) else None
    try:
        return NOTHING if own is None else Overrides.model_validate(own)
    except ValidationError:
        return NOTHING


def _changes(before: Any, after: Any, path: str = "$") -> Iterator[tuple[str, Any, Any]]:
    """The smallest parts that differ; what is not there is None."""
    waiting = [(before, after, path)]
    while waiting:
        before, after, path = waiting.pop(0)
        if before == after and type(before) is type(after):
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            keys = dict.fromkeys([*before, *after])
            waiting[:0] = [(before.get(key), after.get(key), f"{path}.{key}") for key in keys]
        else:
            yield path, before, after
