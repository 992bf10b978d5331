"""The screen of a comparison: the verdict, what it rests on, and what to read next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from mcptrials import excerpt
from mcptrials.cli.screen import SCRIPTED_LABEL, from_here, one_line, safe
from mcptrials.cli.tables import bound_line, effective, new_table
from mcptrials.comparison.telling import behaviour_lines, side_names
from mcptrials.counting import counted
from mcptrials.encoding import dump_text
from mcptrials.shares import interval, percent, points, points_interval, whole_change

Row = Mapping[str, Any]
SHOWN = 8
"""Rows of a list on the screen; the document has all."""
TEXT = 160
_COLOURS = {"better": "bold green", "worse": "bold red", "equivalent": "bold cyan", "inconclusive": "bold yellow"}
_FORMS = {
    "tokens": "{:,.0f}",
    "tool_calls": "{:.1f}",
    "tool_errors": "{:.2f}",
    "duration_ms": "{:,.0f} ms",
    "cost_usd": "${:.4f}",
}


def print_comparison(console: Console, document: Row) -> None:
    """Every comparison of a document, one after the other."""
    if document["scripted"]:
        console.print(safe(SCRIPTED_LABEL, "bold yellow"))
    for found in document["comparisons"]:
        console.print()
        _print_one(console, found, document)


def _print_one(console: Console, found: Row, document: Row) -> None:
    console.print(safe("{1} minus {0}".format(*side_names(found)), "bold"))
    console.print(safe(_paired_line(found, document["scope"])))
    console.print(_sides(found))
    if measures := [row for row in found["measures"] if row["a"] is not None]:
        console.print(_measures(measures))
    if found["strata"]:
        console.print(_strata(found["strata"]))
    for line in _details(found):
        console.print(safe(line))
    for warning in found["warnings"]:
        console.print(safe(f"! {warning}", "yellow"))
    console.print(safe(verdict_line(found), _COLOURS[found["verdict"]]))
    if power := found.get("power"):
        console.print(safe(power["line"]))


def verdict_line(found: Row) -> str:
    return f"{found['verdict'].upper()}: {found['reason']}"


def difference_text(found: Row) -> str:
    """The difference with its interval, in points."""
    return f"{points(found['difference'])} {points_interval(found['ci_low'], found['ci_high'])}".strip()


def _paired_line(found: Row, scope: str) -> str:
    tasks = found["tasks"]
    parts = [f"paired on {counted(len(tasks['paired']), 'task')}"]
    parts += [f"{len(tasks[key])} {key}" for key in ("added", "removed", "edited", "untried") if tasks[key]]
    parts.append({"tasks-like-these": "for tasks like these", "these-tasks": "for these tasks only"}[scope])
    parts.append(found["concurrency"]["how"])
    return " · ".join(parts)


def _sides(found: Row) -> Table:
    rows = new_table("Success", ["", "rate", "95 % interval", "tasks", "passed", "n_eff", "not scored", "distinct"])
    for key, name in zip(("a", "b"), side_names(found), strict=True):
        side = found[key]
        trials = side["passed"] + side["failed"]
        rows.add_row(
            safe(name),
            percent(side["rate"]),
            interval(side["ci_low"], side["ci_high"]),
            str(side["n_tasks"]),
            f"{side['passed']} of {trials}",
            effective(side["n_eff"]),
            str(side["not_scored"]),
            f"{side['distinct_trials']} of {trials}",
        )
    p = "" if found["p_exact"] is None else f"p {found['p_exact']:.3g}"
    correlation = "" if found["correlation"] is None else f"correlation {found['correlation']:.2f}"
    changed = f"{counted(found['n_changed'], 'task')} changed"
    rows.add_row("difference", "", difference_text(found), str(found["n_tasks"]), changed, "", p, correlation)
    return rows


def _measures(measures: Sequence[Row]) -> Table:
    rows = new_table("Per trial", ["", "A", "B", "difference of A", "95 % interval", "tasks"])
    for row in measures:
        form = _FORMS[row["name"]]
        interval = row["relative_ci"]
        rows.add_row(
            row["name"].removesuffix("_ms").removesuffix("_usd").replace("_", " "),
            form.format(row["a"]),
            form.format(row["b"]),
            "" if row["relative"] is None else f"{whole_change(row['relative'])} %",
            "" if interval is None else f"[{whole_change(interval[0])}, {whole_change(interval[1])}]",
            str(row["n_tasks"]),
        )
    return rows


def _strata(strata: Sequence[Row]) -> Table:
    rows = new_table("By class and group", ["", "tasks", "trials", "A", "B", "difference"])
    for row in strata:
        name = row["name"] if row["name"] is not None else "(no group)"
        values = percent(row["mean_a"]), percent(row["mean_b"])
        counts = str(row["n_tasks"]), str(row["n_trials"])
        rows.add_row(safe(f"{row['by']} {name}"), *counts, *values, difference_text(row))
    return rows


def _details(found: Row) -> Iterator[str]:
    for key, name in zip(("a", "b"), side_names(found), strict=True):
        if (bound := found[key]["failure_bound"]) is not None:
            yield bound_line(name, found[key]["n_tasks"], bound)
    yield from behaviour_lines(found)
    yield from flip_lines(found["changed_tasks"])
    yield from _edits(found["tasks"])
    yield from _tools(found["tools"])
    yield from _errors(found["errors"])
    for each in found["conditions"]:
        yield f"allowed to differ: {each['field']}: {_value(each['a'])} and {_value(each['b'])}"
    worst = found["worst_case"]
    if found["a"]["not_scored"] + found["b"]["not_scored"] and worst["for"]["difference"] is not None:
        low, high = (points(worst[case]["difference"]) for case in ("against", "for"))
        yield f"with what is not scored against B, or for it: {low} to {high}"


def flip_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Tasks that flipped, with a transcript of each side; the others are only counted."""
    flipped = [row for row in rows if row["flipped"]]
    for row in flipped[:SHOWN]:
        counts = [f"{row[key]['passed']}/{row[key]['scored']}" for key in ("a", "b")]
        yield f"{'improved' if row['difference'] > 0 else 'worse'}: {row['task_id']} {counts[0]} -> {counts[1]}"
        yield f"    A {from_here(row['transcripts']['a'])}"
        yield f"    B {from_here(row['transcripts']['b'])}"
    others = len(rows) - len(flipped[:SHOWN])
    if others:
        yield f"{counted(others, 'more task has', 'more tasks have')} other rates"


def _edits(tasks: Row) -> Iterator[str]:
    for key in ("added", "removed"):
        if tasks[key]:
            yield f"tasks {key}: {_some(tasks[key])}"
    if tasks["edited"]:
        edited = [f"{each['task_id']} ({each['what']})" for each in tasks["edited"]]
        yield f"tasks edited: {_some(edited)}"
        if any(each["what"] == "graders" for each in tasks["edited"]):
            yield "to pair those graded otherwise, grade both runs again: mcptrials grade RUN"


def _tools(tools: Row) -> Iterator[str]:
    if not tools["known"]:
        yield "the runs do not hold the tool lists of both sides"
        return
    changes = [each for each in tools["changes"] if each["path"] != "$.version"]
    if not changes:
        yield "the tool lists are the same"
    for each in changes[:SHOWN]:
        yield f"tools: {each['subject']} {_tool_change(each)}"
    if more := len(changes[SHOWN:]) + tools["left_out"]:
        yield f"tools: {counted(more, 'more difference')}"


def _tool_change(change: Row) -> str:
    if change["path"] == "$":
        return "is new" if change["before"] is None else "is gone"
    return f"{change['path']}: {_value(change['before'])} -> {_value(change['after'])}"


def _errors(errors: Row) -> Iterator[str]:
    for side in ("a", "b"):
        for each in errors[f"only_{side}"][:SHOWN]:
            text = excerpt.beginning(one_line(each["text"]), TEXT)
            yield f"error in {side.upper()} only, {counted(each['trials'], 'trial')}: {each['tool']}: {text}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _value(value: Any) -> str:
    """A value on a line; None is what is not there."""
    return "(none)" if value is None else excerpt.beginning(one_line(dump_text(value)), TEXT)
