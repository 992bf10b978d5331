"""Headline: the one sentence that a page begins with."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.comparison.telling import side_names
from mcptrials.counting import counted
from mcptrials.page.wording import some
from mcptrials.report.cautions import MIN_TASKS
from mcptrials.shares import interval, percent, points, points_interval

Row = Mapping[str, Any]
_SCOPES = {"tasks-like-these": "on tasks like these", "these-tasks": "on exactly these tasks"}
_VERBS = {"better": "is better than", "worse": "is worse than", "equivalent": "is as good as"}


def headline_of(summaries: Sequence[Row], comparison: Row | None) -> dict[str, Any]:
    """Its sentences, one per comparison or arm, each with a tone; and what limits them."""
    if comparison:
        lines = [_compared(found, comparison["scope"]) for found in comparison["comparisons"]]
    else:
        lines = [_rate(row, summary) for summary in summaries for row in summary["arms"]]
    return {"lines": lines, "limits": [*_limits(summaries)]}


def _compared(found: Row, scope: str) -> dict[str, str]:
    a, b = side_names(found)
    verdict = found["verdict"]
    numbers = f"{points(found['difference'])} points {points_interval(found['ci_low'], found['ci_high'])}".strip()
    if verdict == "inconclusive":
        sentence = f"Inconclusive whether {b} is better or worse than {a}"
    else:
        sentence = f"{b} {_VERBS[verdict]} {a} {_SCOPES[scope]}"
    if found["difference"] is not None:
        sentence += f": {numbers}"
    return {"tone": verdict, "sentence": f"{sentence}.", "reason": found["reason"]}


def _rate(row: Row, summary: Row) -> dict[str, str]:
    trials = row["passed"] + row["failed"]
    if row["rate"] is None:
        tried = row["invalid"] + row["pending"]
        why = f"0 of {tried} trials are scored" if tried else "no trial was tried"
        sentence = f"Nothing can be said of {row['label']}: {why}."
        return {"tone": "nothing", "sentence": sentence, "reason": ""}
    few = {row["task_id"] for row in summary["tasks"]}
    scope = "this one task" if len(few) == 1 else "tasks like these"
    shown = f"{percent(row['rate'])} {interval(row['ci_low'], row['ci_high'])}".strip()
    sentence = f"{row['label']} succeeds at {scope} in {shown} of trials."
    parts = [f"mean over {counted(row['n_tasks'], 'task')}, {counted(trials, 'trial')}", *_pass_k(row, summary["use"])]
    return {"tone": "rate", "sentence": sentence, "reason": "; ".join(parts)}


def _pass_k(row: Row, use: str | None) -> list[str]:
    """pass@k and pass^k at the largest k; the one that the suite's use asks for comes first."""
    k = max(map(int, row["pass_at"]), default=1)
    if k == 1:
        return []
    found = [
        f"{sign}{k} {percent(row[name][str(k)])} {interval(*row[f'{name}_ci'][str(k)])}"
        for sign, name in (("pass@", "pass_at"), ("pass^", "pass_hat"))
    ]
    return found[::-1] if use == "unattended" else found


def _limits(summaries: Sequence[Row]) -> list[str]:
    found = []
    for each in summaries:
        if each["scripted"]:
            found.append(f"{each['run_id']}: scripted, not a language model")
        if not each["complete"]:
            found.append(f"{each['run_id']} is incomplete: {_why_incomplete(each)}")
        if 0 < len({row["task_id"] for row in each["tasks"]}) < MIN_TASKS:
            found.append(f"{each['run_id']}: too few tasks for inference")
        if never := [suspect["task_id"] for suspect in each["suspects"] if suspect["kind"] == "never_passed"]:
            found.append(f"{each['run_id']}: suspect tasks, which no trial passed: {some(never)}")
        if each["split"] == "held_out":
            found.append(f"{each['run_id']} is on held-out tasks; this look at them is logged")
    return found


def _why_incomplete(summary: Row) -> str:
    totals = summary["totals"]
    if summary["missing"]:
        return f"{summary['missing']} of {summary['planned']} trials were not run"
    return f"{totals['invalid']} of {totals['trials']} trials could not be scored"
