"""The summary of one run: the numbers of `summary.json`, from its records and transcripts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from mcptrials.counting import counted
from mcptrials.record import SCHEMA_VERSION, Record
from mcptrials.report.asked import asked_warnings
from mcptrials.report.cautions import cautions
from mcptrials.report.expected import expected_tools
from mcptrials.report.suspects import suspects
from mcptrials.report.tools import tool_rows
from mcptrials.stats import Estimate, all_pass_bound, estimate, estimate_pass_at, estimate_pass_hat, largest_k
from mcptrials.store import Run
from mcptrials.task import Task

SHOWN_K = 10
"""pass@k and pass^k are given for every k up to here, and for the largest."""
STOPS = ("cancelled", "budget")
"""Causes of trials that did not end by themselves."""

Group = tuple[str, str]


def summarise(run: Run) -> dict[str, Any]:
    """All numbers of a run; rates are over scored trials only, with what was not scored beside them."""
    tasks, planned = run.tasks, {(each.task_id, each.arm, each.number) for each in run.planned()}
    found = run.records()
    records = [record for record in found if (record.task_id, record.arm, record.trial) in planned]
    missing = len(planned) - len(records)
    by_arm = {arm: [record for record in records if record.arm == arm] for arm in run.arms}
    labels = _labels(run)
    rows = [row for arm, mine in by_arm.items() for row in _task_rows(arm, mine, tasks)]
    tools, unreadable = tool_rows(run, records)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "run_dir": str(run.folder),
        "grades": run.grades,
        "suspects": suspects(labels, tasks, records),
        "complete": missing == 0 and _is_whole(records, run.manifest["max_invalid"]),
        "scripted": run.scripted,
        "split": run.manifest["split"],
        "planned": len(planned),
        "missing": missing,
        "use": run.manifest.get("use"),
        "arms": [_arm_row(arm, labels[arm], mine, tasks) for arm, mine in by_arm.items()],
        "tasks": rows,
        "classes": [row for arm, mine in by_arm.items() for row in _class_rows(arm, mine, tasks)],
        "tools": tools,
        "expected_tools": expected_tools(list(by_arm), tasks, records),
        "totals": _totals(records),
        "causes": _causes(records),
        "trial_dirs": _kept(records),
        "warnings": [
            *cautions(records, tasks),
            *asked_warnings(labels, by_arm),
            *_lost(unreadable),
            *_strange(len(found) - len(records)),
        ],
    }


def _kept(records: Iterable[Record]) -> list[str]:
    """The folders in which directories of trials are kept: one for each time that the run was gone on with."""
    return list(dict.fromkeys(str(Path(record.trial_dir).parent) for record in records if record.trial_dir))


def _labels(run: Run) -> dict[str, str]:
    """Arm labels; two that read alike carry their ids."""
    count = Counter(arm.label for arm in run.arms.values())
    return {key: arm.label if count[arm.label] == 1 else f"{arm.label} [{key}]" for key, arm in run.arms.items()}


def _scores(records: Iterable[Record], tasks: Mapping[str, Task]) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for record in records:
        if record.passed is not None and record.task_id in tasks:
            scores.setdefault(record.task_id, []).append(float(record.passed))
    return scores


def _groups(tasks: Mapping[str, Task], among: Iterable[str]) -> dict[str, str] | None:
    """Clusters for the standard error; a task without a group is one of its own."""
    groups = {task_id: tasks[task_id].group or f"\0{task_id}" for task_id in among}
    return groups if any(tasks[task_id].group for task_id in groups) else None


def _arm_row(arm: str, label: str, records: Sequence[Record], tasks: Mapping[str, Task]) -> dict[str, Any]:
    scores = _scores(records, tasks)
    groups = _groups(tasks, scores)
    found = estimate(scores, groups)
    ks = _shown_ks(largest_k(scores))
    pass_at = {str(k): estimate_pass_at(scores, k, groups) for k in ks}
    pass_hat = {str(k): estimate_pass_hat(scores, k, groups) for k in ks}
    return {
        "arm": arm,
        "label": label,
        "n_tasks": found.n_tasks,
        "n_trials": found.n_trials,
        **_counts(records),
        "rate": found.mean,
        "se": found.se,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "n_eff": found.n_eff,
        "method": found.method,
        "scope": "tasks-like-these",
        "n_groups": found.n_groups,
        "failure_bound": _failure_bound(found),
        "partial_credit": _partial_credit(records),
        "pass_at": {k: each.mean for k, each in pass_at.items()},
        "pass_at_ci": {k: _interval(each) for k, each in pass_at.items()},
        "pass_at_n_eff": {k: each.n_eff for k, each in pass_at.items()},
        "pass_hat": {k: each.mean for k, each in pass_hat.items()},
        "pass_hat_ci": {k: _interval(each) for k, each in pass_hat.items()},
        "pass_hat_n_eff": {k: each.n_eff for k, each in pass_hat.items()},
        **_bounds(records, tasks),
        "distinct_trials": len({(record.task_id, record.reply_hash) for record in records if record.scored}),
    }


def _partial_credit(records: Sequence[Record]) -> float | None:
    """The mean over tasks of the weighted mean of grades: beside the rate, never in it."""
    by_task: dict[str, list[float | None]] = {}
    for record in records:
        if record.scored:
            by_task.setdefault(record.task_id, []).append(record.partial)
    return _mean(map(_mean, by_task.values()))


def _shown_ks(largest: int) -> list[int]:
    return sorted({*range(1, min(largest, SHOWN_K) + 1), *([largest] if largest else [])})


def _failure_bound(found: Estimate) -> float | None:
    """How many tasks like these may fail though all passed (the rule of three); None otherwise, and of one unit."""
    return all_pass_bound(found.n_groups) if found.mean == 1 and found.n_groups > 1 else None


def _interval(found: Estimate) -> list[float | None]:
    return [found.ci_low, found.ci_high]


def _counts(records: Sequence[Record]) -> dict[str, int]:
    verdicts = Counter(record.verdict for record in records)
    return {verdict: verdicts[verdict] for verdict in ("passed", "failed", "invalid", "pending")}


def _is_whole(records: Sequence[Record], max_invalid: float) -> bool:
    """Whether enough is scored, and nothing was cut off by the user or by the budget: that is owed, however few."""
    invalid = sum(record.verdict == "invalid" for record in records)
    stopped = any(record.cause in STOPS for record in records)
    return invalid < len(records) and invalid / len(records) <= max_invalid and not stopped


def _bounds(records: Sequence[Record], tasks: Mapping[str, Task]) -> dict[str, float | None]:
    """What is not scored is not random: the rate if all of it had failed, and if all had passed."""

    def rate(filled: float) -> float | None:
        scores: dict[str, list[float]] = {}
        for record in records:
            if record.task_id in tasks:
                value = filled if record.passed is None else float(record.passed)
                scores.setdefault(record.task_id, []).append(value)
        return estimate(scores).mean

    unscored = sum(not record.scored for record in records)
    return {
        "share_not_scored": unscored / len(records) if records else None,
        "rate_if_failed": rate(0.0),
        "rate_if_passed": rate(1.0),
    }


def _task_rows(arm: str, records: Sequence[Record], tasks: Mapping[str, Task]) -> list[dict[str, Any]]:
    by_task: dict[str, list[Record]] = {task_id: [] for task_id in tasks}
    for record in records:
        by_task[record.task_id].append(record)
    return [_task_row(arm, task, by_task[task_id]) for task_id, task in tasks.items()]


def _task_row(arm: str, task: Task, records: Sequence[Record]) -> dict[str, Any]:
    scored = [record for record in records if record.scored]
    passed = [record for record in scored if record.passed]
    durations = [record.duration_ms for record in records if record.duration_ms is not None]
    return {
        "task_id": task.id,
        "arm": arm,
        **_counts(records),
        "rate": len(passed) / len(scored) if scored else None,
        "expects": task.expects,
        "calls_p50": median(record.tool_calls for record in scored) if scored else None,
        "duration_ms_p50": median(durations) if durations else None,
        "passed_without_call": sum(record.tool_calls == 0 for record in passed) if task.expects == "act" else 0,
        "causes": dict(Counter(record.cause for record in records if record.cause)),
        "partial": _mean(record.partial for record in scored),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _class_rows(arm: str, records: Sequence[Record], tasks: Mapping[str, Task]) -> list[dict[str, Any]]:
    """Success by what a task expects: one pooled rate hides a model that always calls, or never does."""
    rows = []
    for expects in dict.fromkeys(task.expects for task in tasks.values()):
        chosen = {task_id: task for task_id, task in tasks.items() if task.expects == expects}
        mine = [record for record in records if record.task_id in chosen]
        scores = _scores(mine, chosen)
        found = estimate(scores, _groups(chosen, scores))
        interval = {"ci_low": found.ci_low, "ci_high": found.ci_high, "n_eff": found.n_eff, "method": found.method}
        rows.append(
            {"arm": arm, "class": expects, "n_tasks": len(chosen), **_counts(mine), "rate": found.mean, **interval}
        )
    return rows


def _totals(records: Sequence[Record]) -> dict[str, Any]:
    def known(name: str) -> Any:
        """Over the trials in which the model replied: the others used nothing."""
        values = [getattr(record, name) for record in records if record.reply_hash is not None]
        return None if not values or any(value is None for value in values) else sum(values)

    names = ("tool_calls", "tool_errors", "protocol_errors", "unknown_tools", "argument_errors", "contract_violations")
    tokens = ("input_tokens", "output_tokens", "cached_input_tokens", "cost_usd")
    durations = [record.duration_ms for record in records if record.duration_ms is not None]
    return {
        "trials": len(records),
        **_counts(records),
        **{name: sum(getattr(record, name) for record in records) for name in names},
        **{name: known(name) for name in tokens},
        "duration_ms": sum(durations) if durations else None,
        "duration_ms_p50": median(durations) if durations else None,
        "wait_ms": sum(record.wait_ms or 0 for record in records),
    }


def _causes(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Why trials did not pass, most frequent first."""
    count = Counter((r.verdict, r.blame, r.cause) for r in records if r.verdict in ("failed", "invalid"))
    return [
        {"verdict": verdict, "blame": blame, "cause": cause, "trials": number}
        for (verdict, blame, cause), number in count.most_common()
    ]


def _lost(transcripts: Sequence[str]) -> list[str]:
    if not transcripts:
        return []
    many = counted(len(transcripts), "transcript")
    return [f"{many} cannot be read, {transcripts[0]} first: calls are missing in the tools table"]


def _strange(count: int) -> list[str]:
    belong = "record belongs", "records belong"
    return [f"{counted(count, *belong)} to no trial of the run's plan: left out"] if count else []
