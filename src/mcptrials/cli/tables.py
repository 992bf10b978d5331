"""The tables of a run: arms, tasks, classes, tools, and what to look at next."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from mcptrials import excerpt
from mcptrials.cli.screen import SCRIPTED_LABEL, from_here, program, safe
from mcptrials.counting import counted
from mcptrials.record import NO_SUCH_TOOL
from mcptrials.shares import interval, percent

Row = Mapping[str, Any]
_NAME = 80
"""Characters of a tool's name: a model may call what does not exist by any."""


def print_summary(console: Console, summary: Row) -> None:
    """The whole screen of a finished run."""
    labels = {row["arm"]: row["label"] for row in summary["arms"]}
    console.print()
    if summary["scripted"]:
        console.print(safe(SCRIPTED_LABEL, "bold yellow"))
    _print_suspects(console, summary)
    console.print(_tasks(summary["tasks"], labels))
    if len({row["class"] for row in summary["classes"]}) > 1:
        console.print(_classes(summary["classes"], labels))
    if summary["tools"]:
        console.print(_tools(summary["tools"], labels))
    if summary["expected_tools"]["table"]:
        console.print(_expected(summary["expected_tools"], labels))
    console.print(_arms(summary))
    _print_notes(console, summary)


def _print_suspects(console: Console, summary: Row) -> None:
    """Ahead of the numbers: what may be wrong with them."""
    run_dir = from_here(summary["run_dir"])
    for each in summary["suspects"]:
        task = f"task {each['task_id']}: " if each["task_id"] else ""
        console.print(safe(f"? suspect {task}{each['reason']}", "yellow"))
    first = next((each for each in summary["suspects"] if each["examples"]), None)
    if first:
        console.print(safe(f"  read one: {program()} show {run_dir} {first['examples'][0]}", "dim"))


def new_table(title: str, columns: Sequence[str], left: int = 1) -> Table:
    """An empty table; the columns after the first `left` are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        words = index < left or column == "why not"
        table.add_column(safe(column), justify="left" if words else "right", overflow="fold")
    return table


def _arm_cells(labels: Mapping[str, str], arm: str) -> list[Any]:
    """The arm's column, left out while there is only one."""
    return [safe(labels[arm])] if len(labels) > 1 else []


def _arm_column(labels: Mapping[str, str]) -> list[str]:
    return ["arm"] if len(labels) > 1 else []


def _tasks(rows: Sequence[Row], labels: Mapping[str, str]) -> Table:
    partial = any(row["partial"] is not None and row["partial"] != row["rate"] for row in rows)
    credit = ["partial credit"] if partial else []
    columns = ["task", *_arm_column(labels), "passed", "rate", *credit, "calls", "time", "why not"]
    table = new_table("Tasks", columns, left=len(columns) - 5 - len(credit))
    for row in rows:
        scored = row["passed"] + row["failed"]
        table.add_row(
            safe(row["task_id"]),
            *_arm_cells(labels, row["arm"]),
            safe(f"{row['passed']} of {scored}", _colour(row["rate"])),
            safe(percent(row["rate"]), _colour(row["rate"])),
            *([percent(row["partial"])] if partial else []),
            _number(row["calls_p50"]),
            _seconds(row["duration_ms_p50"]),
            safe(_why(row), "dim"),
        )
    return table


def _why(row: Row) -> str:
    causes = [f"{cause} {count}" if count > 1 else cause for cause, count in row["causes"].items()]
    if row["passed_without_call"]:
        causes.append(f"{row['passed_without_call']} passed without a call")
    return ", ".join(causes)


def _classes(rows: Sequence[Row], labels: Mapping[str, str]) -> Table:
    columns = ["class", *_arm_column(labels), "tasks", "passed", "rate", "95 % interval", "n_eff", "for"]
    table = new_table("Classes", columns, left=len(columns) - 6)
    for row in rows:
        scored = row["passed"] + row["failed"]
        table.add_row(
            safe(row["class"]),
            *_arm_cells(labels, row["arm"]),
            str(row["n_tasks"]),
            f"{row['passed']} of {scored}",
            percent(row["rate"]),
            interval(row["ci_low"], row["ci_high"]),
            effective(row["n_eff"]),
            _scope(row["method"]),
        )
    return table


def _scope(method: str | None) -> str:
    """What an interval is about: a single task, or a single group, tells nothing of others."""
    if method is None:
        return ""
    return method.partition(", ")[2] or "tasks like these"


def _tools(rows: Sequence[Row], labels: Mapping[str, str]) -> Table:
    some_refused = any(row["rejected_though_valid"] for row in rows)
    numbers = ["calls", "errors", "bad arguments", *["valid, refused"] * some_refused, "p50", "p95", "result"]
    columns = ["tool", *_arm_column(labels), *numbers]
    table = new_table("Tools", columns, left=len(columns) - len(numbers))
    for row in rows:
        table.add_row(
            safe(f"{excerpt.beginning(row['name'], _NAME)}{NO_SUCH_TOOL if row['unknown'] else ''}"),
            *_arm_cells(labels, row["arm"]),
            str(row["calls"]),
            str(row["errors"]),
            str(row["argument_errors"]),
            *[str(row["rejected_though_valid"])] * some_refused,
            _milliseconds(row["ms_p50"]),
            _milliseconds(row["ms_p95"]),
            "" if row["result_chars_p50"] is None else counted(round(row["result_chars_p50"]), "char"),
        )
    return table


def _expected(expected: Row, labels: Mapping[str, str]) -> Table:
    """Which tools trials called that were expected to call another; reported, never deciding."""
    columns = ["expected tool", *_arm_column(labels), "trials", "tools called in so many of them"]
    rows = expected["rows"]
    means = [f"{name} {_mean_percent([row[name] for row in rows])}" for name in ("precision", "recall")]
    table = new_table(f"Expected tools: {', '.join(means)}", columns, left=len(columns) - 2)
    table.columns[-1].justify = "left"
    for row in expected["table"]:
        called = ", ".join(f"{name} {count}" for name, count in row["called"].items())
        table.add_row(
            safe(row["expected"]), *_arm_cells(labels, row["arm"]), str(row["trials"]), safe(called or "none")
        )
    return table


def _mean_percent(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return percent(sum(known) / len(known) if known else None)


def _arms(summary: Row) -> Table:
    """The headline: success, pass@k and pass^k of each arm at the largest k that all tasks allow."""
    columns = ["arm", "measure", "value", "interval", "SE", "tasks", "passed", "n_eff", "not scored"]
    scopes = dict.fromkeys(_scope(row["method"]) for row in summary["arms"] if row["method"])
    scope = f", 95 % interval for {' or '.join(scopes)}" if scopes else ""
    table = new_table(f"Result: mean over tasks{scope}", columns, left=2)
    for row in summary["arms"]:
        table.add_row(
            safe(row["label"]),
            "success",
            safe(percent(row["rate"]), "bold"),
            interval(row["ci_low"], row["ci_high"]),
            "" if row["se"] is None else f"{100 * row['se']:.1f}",
            str(row["n_tasks"])
            + (f" in {counted(row['n_groups'], 'group')}" if row["n_groups"] < row["n_tasks"] else ""),
            f"{row['passed']} of {row['passed'] + row['failed']}",
            effective(row["n_eff"]),
            _unscored(row),
        )
        for name, value, ends, n_eff in _pass_k(row, summary["use"]):
            table.add_row("", name, value, ends, "", str(row["n_tasks"]), "", n_eff, "")
    return table


def _pass_k(row: Row, use: str | None) -> list[tuple[str, str, str, str]]:
    """pass@k and pass^k at the largest k; the one that the suite's use asks for comes first."""
    largest = max((int(k) for k in row["pass_at"]), default=1)
    if largest == 1:
        return []
    k = str(largest)
    found = [
        (f"pass@{k}", percent(row["pass_at"][k]), interval(*row["pass_at_ci"][k]), effective(row["pass_at_n_eff"][k])),
        (
            f"pass^{k}",
            percent(row["pass_hat"][k]),
            interval(*row["pass_hat_ci"][k]),
            effective(row["pass_hat_n_eff"][k]),
        ),
    ]
    return found[::-1] if use == "unattended" else found


def _unscored(row: Row) -> str:
    """With the rates if all of it had failed, and if all had passed; of nothing scored there is no rate at all."""
    count = row["invalid"] + row["pending"]
    if not count or row["rate"] is None:
        return str(count)
    return f"{count}: {percent(row['rate_if_failed'])} to {percent(row['rate_if_passed'])}"


def _print_notes(console: Console, summary: Row) -> None:
    totals = summary["totals"]
    if totals["passed"] + totals["failed"] == 0:
        console.print(safe(f"0 of {counted(summary['planned'], 'trial')} scored: no rate can be given", "bold red"))
    for row in summary["arms"]:
        if row["failure_bound"] is not None:
            console.print(safe(bound_line(row["label"], row["n_tasks"], row["failure_bound"])))
    console.print(safe(_totals_line(totals)))
    for cause in summary["causes"]:
        kind = "not scored" if cause["verdict"] == "invalid" else "failed"
        console.print(safe(f"  {cause['trials']} {kind}: {cause['cause']} (blame: {cause['blame']})", "dim"))
    for warning in summary["warnings"]:
        console.print(safe(f"! {warning}", "yellow"))
    run_dir = from_here(summary["run_dir"])
    console.print(safe(f"transcripts: {run_dir}/transcripts"))
    for folder in summary["trial_dirs"]:
        console.print(safe(f"trial dirs:  {folder}"))
    example = next((row for row in summary["tasks"] if row["failed"]), next(iter(summary["tasks"]), None))
    if example:
        console.print(safe(f"read one:    {program()} show {run_dir} {example['task_id']}"))


def _totals_line(totals: Row) -> str:
    tokens = "tokens not reported"
    if totals["input_tokens"] is not None and totals["output_tokens"] is not None:
        tokens = f"{counted(totals['input_tokens'], 'token')} in, {totals['output_tokens']:,} out"
    time = "" if totals["duration_ms"] is None else f" · {totals['duration_ms'] / 1000:.1f} s of trials"
    nowhere = totals["unknown_tools"]
    unknown = f"{counted(nowhere, 'call of a tool', 'calls of tools')} not there, " if nowhere else ""
    return (
        f"{counted(totals['trials'], 'trial')} · {counted(totals['tool_calls'], 'tool call')}, {unknown}"
        f"{counted(totals['tool_errors'], 'tool error')}, {counted(totals['protocol_errors'], 'protocol error')} · "
        f"{tokens}{time}"
    )


def effective(n_eff: float | None) -> str:
    """How many independent trials an interval counts."""
    return "" if n_eff is None else f"{n_eff:.1f}".removesuffix(".0")


def bound_line(label: str, n_tasks: int, bound: float) -> str:
    """The rule of three, where every trial passed."""
    return f"{label}: all {n_tasks} tasks always passed; up to {percent(bound)} of tasks like these may still fail"


def _colour(rate: float | None) -> str:
    if rate is None:
        return "dim"
    return "green" if rate == 1 else "red" if rate == 0 else "yellow"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _seconds(ms: float | None) -> str:
    if ms is None:
        return ""
    return f"{ms / 1000:.1f} s" if ms >= 100 else f"{ms:.0f} ms"  # noqa: PLR2004 - readable digits


def _milliseconds(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"  # noqa: PLR2004 - readable digits
