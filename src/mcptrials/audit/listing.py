"""A server's tool list: twice the same, names and schemas that hosts can use, and its size."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import anyio

from mcptrials.audit.line import Level, Line
from mcptrials.counting import counted
from mcptrials.dialect import VALID, adapt
from mcptrials.errors import ServerError, boundary
from mcptrials.presentation import BYTES_PER_TOKEN, RawTool, amiss, definition_bytes
from mcptrials.project import ServerConfig
from mcptrials.source import nearest

SPEC_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""Spec 2026-07-28, server/tools: tool names SHOULD be of this form."""
MANY_TOKENS = 20_000


def listing_lines(label: str, session: Any, config: ServerConfig) -> list[Line]:
    """What is to be said of the tools of an open session."""
    tools: Sequence[RawTool] = tuple(session.tools)
    faults = [
        *_broken(session.problems, config),
        *_names(tools),
        *_unknown(tools, config),
        *(("fail", f"tool {tool['name']!r}: {fault}", "mend the schema") for tool in tools for fault in _schemas(tool)),
    ]
    lines = [Line("servers", level, label, what, fix) for level, what, fix in faults]
    if not faults:
        lines.append(Line("servers", "ok", label, f"{counted(len(tools), 'tool')} with unique names and valid schemas"))
    return [*lines, _size(label, tools), *_undescribed(label, tools), *_unannotated(label, tools)]


def _broken(problems: Sequence[str], config: ServerConfig) -> Iterator[tuple[Level, str, str]]:
    for problem in problems:
        if config.on_invalid_tool == "drop":
            yield "warn", f"{problem}; it is left out", "mend the server"
        else:
            yield "fail", problem, "mend the server, or set on_invalid_tool: drop to go on without it"


def _names(tools: Sequence[RawTool]) -> Iterator[tuple[Level, str, str]]:
    for tool in tools:
        if not SPEC_NAME.fullmatch(tool["name"]):
            what = f"tool {tool['name']!r:.140}: a name should be 1 to 128 letters, digits and _ . -"
            yield "warn", what, "rename it; models are shown another name"


def _unknown(tools: Sequence[RawTool], config: ServerConfig) -> Iterator[tuple[Level, str, str]]:
    names = [str(tool["name"]) for tool in tools]
    for name in (*(config.tools.allow or ()), *config.tools.hide):
        if name not in names:
            yield "fail", f"it has no tool {name!r} to allow or hide", nearest(name, names) or "remove it"
    for problem in amiss(config.tools.inject, tools):
        yield "fail", f"it {problem}", "mend tools.inject"


def _schemas(tool: RawTool) -> Iterator[str]:
    for key in ("inputSchema", "outputSchema"):
        if key in tool:
            for fault in adapt(tool[key], VALID).obstacles:
                yield f"{key} {fault.path} {fault.what}"


def _size(label: str, tools: Sequence[RawTool]) -> Line:
    size = definition_bytes(tools)
    tokens = round(size / BYTES_PER_TOKEN)
    said = f"the tool list, as models are shown it, is about {tokens:,} tokens (estimated from {size:,} bytes)"
    facts = {"tools": len(tools), "bytes": size, "tokens_estimated": tokens}
    if tokens > MANY_TOKENS:
        fix = "shorten descriptions, or show fewer tools with tools.allow"
        return Line("servers", "warn", label, f"{said}, sent with every request", fix, facts)
    return Line("servers", "ok", label, said, None, facts)


def _undescribed(label: str, tools: Sequence[RawTool]) -> list[Line]:
    bare = [tool["name"] for tool in tools if not str(tool.get("description") or "").strip()]
    if not bare:
        return []
    fix, facts = "say what each does; models choose by it", {"tools": bare}
    return [
        Line("servers", "warn", label, f"{counted(len(bare), 'tool')} without description: {_named(bare)}", fix, facts)
    ]


def _unannotated(label: str, tools: Sequence[RawTool]) -> list[Line]:
    """Spec, server/tools: without annotations every tool has to be taken for one that may write."""
    if not tools or any(tool.get("annotations") for tool in tools):
        return []
    what = "none of its tools has annotations, so each counts as one that may write"
    fix = "set readOnlyHint: true on those that only read (Python: annotations=ToolAnnotations(readOnlyHint=True))"
    return [Line("servers", "warn", label, what, fix, {"unannotated": len(tools)})]


async def relisting_line(label: str, session: Any, timeout_s: float) -> Line:
    """Spec, server/tools: the list does not change as a side effect of other requests; its order should not."""
    first = list(session.tools)
    try:
        with boundary(ServerError, "contract_violation", "listed its tools once, and then not again"):
            with anyio.move_on_after(timeout_s) as limit:
                await session.list()
    except ServerError as exc:
        return Line("servers", "fail", label, exc.message, "mend the server")
    if limit.cancelled_caught:
        return Line("servers", "fail", label, f"did not list its tools again within {timeout_s:g} s", "mend the server")
    second = list(session.tools)
    if json.dumps(first) == json.dumps(second):
        return Line("servers", "ok", label, "listed its tools twice alike")
    sets = [sorted(json.dumps(tool, sort_keys=True) for tool in each) for each in (first, second)]
    if sets[0] == sets[1]:
        fix = "list them in one order: caches of providers depend on it"
        return Line("servers", "warn", label, "listed the same tools in another order the second time", fix)
    fix = "a tool list may not depend on earlier requests or on the time"
    what = f"listed other tools the second time: {_difference(first, second)}"
    return Line("servers", "fail", label, what, fix)


def _difference(first: Sequence[RawTool], second: Sequence[RawTool]) -> str:
    """Which tools, by name."""
    before, after = ({tool["name"]: json.dumps(tool, sort_keys=True) for tool in each} for each in (first, second))
    kinds = {
        "gone": [name for name in before if name not in after],
        "new": [name for name in after if name not in before],
        "changed": [name for name in before if after.get(name, before[name]) != before[name]],
    }
    return "; ".join(f"{kind}: {_named(names)}" for kind, names in kinds.items() if names)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")  # noqa: PLR2004
