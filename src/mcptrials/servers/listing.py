"""`tools/list`, leniently: every page, and one bad tool never costs the good ones."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcptrials import excerpt
from mcptrials.presentation import RawTool

MAX_PAGES = 250
MAX_TOOLS = 10_000
MAX_PROBLEMS = 100
"""That are told one by one."""
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools as the server sent them, and what is wrong with the list."""

    tools: tuple[RawTool, ...]
    problems: tuple[str, ...]


async def list_tools(request: Callable[[dict[str, Any]], Awaitable[Any]]) -> Listing:
    """All pages of `tools/list` (spec, server/utilities/pagination: an empty cursor is not the end).

    Args:
        request: sends `tools/list` with the given params and returns the raw result.
    """
    tools: list[Any] = []
    problems: list[str] = []
    seen: set[str] = set()
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        page = await request(params)
        items = page.get("tools") if isinstance(page, dict) else None
        if not isinstance(items, list):
            problems.append("a tools/list result has no list 'tools'")
            break
        tools += items
        if len(tools) > MAX_TOOLS:
            problems.append(f"tools/list has more than {MAX_TOOLS} tools")
            break
        cursor = page.get("nextCursor")
        if cursor is None:
            break
        if not isinstance(cursor, str) or cursor in seen:
            shown = excerpt.beginning(repr(cursor), _SHOWN)
            problems.append(f"the pages of tools/list do not end: cursor {shown} came twice or is no string")
            break
        seen.add(cursor)
        params = {"cursor": cursor}
    else:
        problems.append(f"tools/list has more than {MAX_PAGES} pages")
    return _checked(tools[:MAX_TOOLS], problems)


def _checked(items: list[Any], problems: list[str]) -> Listing:
    tools: dict[str, RawTool] = {}
    for index, item in enumerate(items):
        problem = _problem(item)
        name = item.get("name") if isinstance(item, dict) else None
        named = isinstance(name, str) and name
        label = f"tool {excerpt.beginning(repr(name), _SHOWN)}" if named else f"tool number {index + 1}"
        if problem is None and name in tools:
            problem = "is listed twice"
        if problem is None:
            tools[str(name)] = item
        else:
            problems.append(f"{label} {problem}")
    if (left := len(problems) - MAX_PROBLEMS) > 0:
        problems[MAX_PROBLEMS:] = [f"{left} more problems of the tool list"]
    return Listing(tuple(tools.values()), tuple(problems))


def _problem(tool: Any) -> str | None:
    if not isinstance(tool, dict):
        return "is not an object"
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        return "has no name"
    if any("\ud800" <= char <= "\udfff" for char in name):
        return "has a name that is no Unicode text"
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return f"has no object as inputSchema, but {excerpt.beginning(repr(schema), _SHOWN)}"
    if schema.get("type") != "object":
        kind = excerpt.beginning(repr(schema.get("type")), _SHOWN)
        return f"has an inputSchema whose type is {kind}, not 'object'"
    return None
