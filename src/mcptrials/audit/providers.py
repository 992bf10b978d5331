"""Tools by providers: which are taken as they are, which are adapted, which are refused; no model is asked."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.audit.line import Level, Line
from mcptrials.audit.serving import Served
from mcptrials.dialect import DIALECTS, EXACT, Dialect, adapt
from mcptrials.presentation import RawTool, provider_name
from mcptrials.project import ModelConfig

MAX_TOLD = 50
"""Rewrites of one tool for one provider that are listed one by one."""


def tool_rows(served: Sequence[Served], models: Sequence[ModelConfig]) -> list[dict[str, Any]]:
    """One row per tool that a task shows: what becomes of it in each known dialect."""
    dialects = _dialects(models)
    return [
        {"server": each.label, "tool": tool["name"], "providers": {d.name: _judged(tool, d) for d in dialects}}
        for each in served
        for tool in each.shown
    ]


def _dialects(models: Sequence[ModelConfig]) -> list[Dialect]:
    """Those of the models first, then the other known ones."""
    used = {model.dialect.name: model.dialect for model in models}
    return [each for name, each in (used | dict(DIALECTS)).items() if name != EXACT.name or name in used]


def _judged(tool: RawTool, dialect: Dialect) -> dict[str, Any]:
    schema, name = tool.get("inputSchema"), provider_name(tool["name"], dialect)
    adapted = adapt(schema, dialect)
    rewrites = [{"rule": each.rule, "path": each.path} for each in adapted.rewrites[:MAX_TOLD]]
    if name != tool["name"]:
        rewrites.insert(0, {"rule": "tool_name", "path": "name", "after": name})
    status = "rejected" if adapted.obstacles else "adapted" if rewrites else "ok"
    reasons = [{"path": each.path, "what": each.what} for each in adapted.obstacles]
    return {"status": status, "changes": len(adapted.rewrites), "rewrites": rewrites, "obstacles": reasons}


def provider_lines(
    rows: Sequence[Mapping[str, Any]],
    models: Sequence[ModelConfig],
    most_shown: int,
    hidden: tuple[str, str] | None = None,
) -> list[Line]:
    """One line per dialect, and one for each tool that a provider refuses.

    Args:
        most_shown: how many tools one variant shows at most.
        hidden: why there are tools of which none is shown, and what would help.
    """
    if not rows:
        why, fix = hidden or ("no server lists one", "see the servers above")
        return [Line("providers", "fail" if hidden else "warn", "tools", f"no model is shown a tool: {why}", fix)]
    lines = []
    for dialect in _dialects(models):
        users = [model.model for model in models if model.dialect.name == dialect.name]
        lines += _lines(dialect, users, rows)
        if dialect.max_tools is not None and most_shown > dialect.max_tools:
            what = f"takes {dialect.max_tools} tools at most, and {most_shown} are shown"
            fix = "choose some with servers.<name>.tools.allow or tools.hide"
            lines.append(Line("providers", "fail" if users else "warn", dialect.name, what, fix, {"tools": most_shown}))
    return lines


def _lines(dialect: Dialect, users: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    verdicts = [row["providers"][dialect.name] for row in rows]
    count = {kind: sum(each["status"] == kind for each in verdicts) for kind in ("ok", "adapted", "rejected")}
    bad: Level = "fail" if users else "warn"
    who = f"for {', '.join(users)}" if users else "not used here"
    said = f"{who}: " + ", ".join(f"{number} {kind}" for kind, number in count.items())
    lines = [Line("providers", "ok" if not count["rejected"] else bad, dialect.name, said, None, count)]
    for row, verdict in zip(rows, verdicts, strict=True) if users else ():
        for obstacle in verdict["obstacles"][:1]:
            what = f"refuses {row['server']}/{row['tool']}: {obstacle['path']} {obstacle['what']}"
            lines.append(
                Line("providers", bad, dialect.name, what, "mend the schema, or hide the tool", dict(obstacle))
            )
    return lines
