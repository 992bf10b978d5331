"""An audit on the screen: a line per thing, long lists folded, the tools that not every provider takes as a table."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table

from mcptrials.cli.screen import Screen, one_line, safe
from mcptrials.counting import counted

MAX_ALIKE = 8
"""Lines of one subject and level; further ones are counted."""
MAX_ROWS = 12
MAX_NAME = 40
MAX_NOTICING = 3
"""Tasks that are named beside a fault; further ones are counted."""
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "adapted": "yellow", "rejected": "bold red"}


def print_audit(screen: Screen, document: Mapping[str, Any], *, quiet: bool) -> None:
    """All lines, or with `quiet` those that are not ok."""
    shown = [line for line in document["lines"] if not quiet or line["level"] != "ok"]
    # A section may have lines that are found later: the proof of the reset needs the servers.
    for section in dict.fromkeys(line["section"] for line in shown):
        screen.print(safe(section, "bold"))
        screen.print(_lines([line for line in shown if line["section"] == section]))
        if section == "tasks" and document["faults"] and not quiet:
            screen.print(_faults(document["faults"]))
            if (more := len(document["faults"]) - MAX_ROWS) > 0:
                screen.print(safe(f"  and {more} more faults (--json lists all)"))
        if section == "providers" and (rows := [row for row in document["tools"] if _odd(row)]):
            screen.print(_tools(rows))
            if len(rows) > MAX_ROWS:
                screen.print(safe(f"  and {counted(len(rows) - MAX_ROWS, 'more tool')} (--json lists all)"))
    counts = document["counts"]
    screen.print(safe(f"{counts['ok']} ok, {counted(counts['warn'], 'warning')}, {counts['fail']} failed"))


def _lines(lines: Sequence[Mapping[str, Any]]) -> Table:
    """By subject: what is ok in one row, then each thing that is not."""
    table = Table.grid(padding=(0, 2))
    for width in (0, 4, None, None):
        table.add_column(overflow="fold", min_width=width)
    for subject, group in groupby(lines, lambda line: line["subject"]):
        alike = list(group)
        fine = "; ".join(one_line(line["what"]) for line in alike if line["level"] == "ok")
        if fine:
            table.add_row("", safe("ok", _STYLES["ok"]), safe(one_line(subject)), safe(fine))
        for level in ("warn", "fail"):
            told = [line for line in alike if line["level"] == level]
            for line in told[:MAX_ALIKE]:
                what = safe(one_line(line["what"])).append(
                    f"\n-> {one_line(line['fix'])}" if line["fix"] else "", "dim"
                )
                table.add_row("", safe(level, _STYLES[level]), safe(one_line(subject)), what)
            if len(told) > MAX_ALIKE:
                table.add_row("", "", "", safe(f"and {len(told) - MAX_ALIKE} more (--json lists all)"))
    return table


def _faults(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Which task notices which planted fault; what nobody notices comes first."""
    table = Table(box=None, padding=(0, 2))
    for heading in ("  planted fault", "tool", "noticed by"):
        table.add_column(safe(heading), overflow="fold")
    for row in sorted(rows, key=lambda row: bool(row["noticed_by"]))[:MAX_ROWS]:
        argument = f" ({one_line(row['argument'])})" if row["argument"] else ""
        first, more = row["noticed_by"][:MAX_NOTICING], len(row["noticed_by"]) - MAX_NOTICING
        noticing = one_line(", ".join(first)) + (f" and {more} more" if more > 0 else "")
        where = safe(f"{one_line(row['server'])}/{one_line(row['tool'])}{argument}")
        table.add_row(safe(f"  {row['fault']}"), where, safe(noticing) if first else safe("nobody", _STYLES["warn"]))
    return table


def _odd(row: Mapping[str, Any]) -> bool:
    return any(each["status"] != "ok" for each in row["providers"].values())


def _tools(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2))
    for heading in ("  tool", *rows[0]["providers"]):
        table.add_column(safe(heading), overflow="fold")
    for row in rows[:MAX_ROWS]:
        cells = [safe(_cell(each), _STYLES[each["status"]]) for each in row["providers"].values()]
        name = f"{one_line(row['server'])}/{one_line(row['tool'])}"
        table.add_row(safe(f"  {name}" if len(name) <= MAX_NAME else f"  {name[: MAX_NAME - 3]}..."), *cells)
    return table


def _cell(verdict: Mapping[str, Any]) -> str:
    """The status with the first places concerned."""
    if verdict["status"] == "ok":
        return "ok"
    told = verdict["obstacles"] if verdict["status"] == "rejected" else verdict["rewrites"]
    more = f" +{len(told) - 1}" if len(told) > 1 else ""
    return f"{verdict['status']} {one_line(told[0]['path']).removeprefix('$.')}{more}"
