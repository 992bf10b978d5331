"""Success on both sides, task by task, and what of the verdict trials without a score could overturn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcptrials.comparison.side import Side
from mcptrials.counting import counted
from mcptrials.record import Record
from mcptrials.stats import (
    Estimate,
    PairedComparison,
    Scope,
    all_pass_bound,
    compare_paired,
    copies_exceed_chance,
    count_copies,
    estimate,
)
from mcptrials.task import Task

Scores = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Question:
    """What a comparison is about."""

    scope: Scope = "tasks-like-these"
    margin: float | None = None
    """A difference below it does not matter."""


def scores(side: Side, tasks: Sequence[str], filled: float | None = None) -> Scores:
    """The scores of each task's trials; of one without a score that of `filled`, if it is given."""
    found = {task_id: [_score(record, filled) for record in side.by_task[task_id]] for task_id in tasks}
    known = {task_id: [each for each in values if each is not None] for task_id, values in found.items()}
    return {task_id: values for task_id, values in known.items() if values}


def _score(record: Record, filled: float | None) -> float | None:
    return filled if record.passed is None else float(record.passed)


def groups_of(tasks: Mapping[str, Task], chosen: Sequence[str]) -> dict[str, str] | None:
    """Clusters for standard errors; None where no task has one."""
    groups = {task_id: group for task_id in chosen if (group := tasks[task_id].group)}
    return groups or None


def compared(a: Side, b: Side, tasks: Sequence[str], question: Question) -> PairedComparison | None:
    """Success of b less that of a; None when no task has a score on both sides."""
    mine, other = scores(a, tasks), scores(b, tasks)
    return _compared(mine, other, groups_of(a.tasks, tasks), question, copied=_copied(a, b, tasks, question))


def _compared(
    a: Scores, b: Scores, groups: dict[str, str] | None, question: Question, *, copied: bool
) -> PairedComparison | None:
    if not a.keys() & b.keys():
        return None
    return compare_paired(a, b, groups, question.scope, question.margin, copied)


def worst_cases(a: Side, b: Side, tasks: Sequence[str], question: Question) -> dict[str, Any]:
    """The comparison if every trial without a score speaks against b, and if it speaks for b."""
    groups = groups_of(a.tasks, tasks)
    cases = {"against": (1.0, 0.0), "for": (0.0, 1.0)}
    found = {
        case: _compared(scores(a, tasks, in_a), scores(b, tasks, in_b), groups, question, copied=False)
        for case, (in_a, in_b) in cases.items()
    }
    return {case: _case(each) for case, each in found.items()}


def as_found(found: PairedComparison | None) -> dict[str, Any]:
    """The same where every trial has a score."""
    return {case: _case(found) for case in ("against", "for")}


def _case(found: PairedComparison | None) -> dict[str, Any]:
    return {
        "difference": found and found.difference,
        "p_exact": found and found.p_exact,
        "verdict": found.verdict if found else "inconclusive",
    }


def surviving(found: PairedComparison, worst: Mapping[str, Any], unscored: int) -> PairedComparison:
    """A verdict holds only if trials without a score could not have overturned it: they are not missing at random."""
    if found.verdict == "inconclusive" or all(case["verdict"] == found.verdict for case in worst.values()):
        return found
    what = counted(unscored, "trial is", "trials are")
    reason = f"{what} not scored, and could overturn what the others say ({found.verdict})"
    return replace(found, verdict="inconclusive", reason=reason)


def _copied(a: Side, b: Side, tasks: Sequence[str], question: Question) -> bool:
    """Whether trials repeat each other so that they cannot be the unit; where tasks are, it does no harm."""
    if question.scope == "tasks-like-these":
        return False
    return copies_exceed_chance(_replies(a, tasks), _replies(b, tasks))


def _replies(side: Side, tasks: Sequence[str]) -> dict[str, list[str | None]]:
    return {task_id: [each.reply_hash for each in side.by_task[task_id] if each.scored] for task_id in tasks}


def side_row(side: Side, tasks: Sequence[str], scope: Scope) -> dict[str, Any]:
    """One side's own numbers, over the tasks that are compared."""
    records = [record for task_id in tasks for record in side.by_task[task_id]]
    unscored = sum(not record.scored for record in records)
    copies = count_copies(_replies(side, tasks))
    found = estimate(scores(side, tasks), groups_of(side.tasks, tasks), scope)
    return {
        "name": side.name,
        "run_id": side.run.run_id,
        "run_dir": str(side.run.folder),
        "arm": side.arm_id,
        "label": side.arm.label,
        "variant": side.arm.variant,
        "split": side.stated("split"),
        **_estimate(found),
        "failure_bound": all_pass_bound(found.n_groups) if _always(found, scope) else None,
        "passed": sum(record.passed is True for record in records),
        "failed": sum(record.passed is False for record in records),
        "not_scored": unscored,
        "share_not_scored": unscored / len(records) if records else None,
        "missing": side.planned - len(side.records),
        "distinct_trials": copies.n_distinct,
        "share_copies": copies.share,
    }


def _always(found: Estimate, scope: Scope) -> bool:
    """All of several independent tasks passed each time: what tasks like these may still fail is the rule of three."""
    return found.mean == 1 and found.n_groups > 1 and scope == "tasks-like-these"


def _estimate(found: Estimate) -> dict[str, Any]:
    names = ("n_tasks", "n_trials", "n_eff", "se", "ci_low", "ci_high", "method")
    return {"rate": found.mean, **{name: getattr(found, name) for name in names}}


_BY: Mapping[str, Callable[[Task], str | None]] = {
    "expects": lambda task: task.expects,
    "group": lambda task: task.group,
}


def strata(a: Side, b: Side, tasks: Sequence[str], question: Question) -> list[dict[str, Any]]:
    """The difference by what tasks expect, and by group, where there are several."""
    rows = []
    for kind, of in _BY.items():
        names = dict.fromkeys(of(a.tasks[task_id]) for task_id in tasks)
        for name in names if len(names) > 1 else ():
            chosen = [task_id for task_id in tasks if of(a.tasks[task_id]) == name]
            groups = None if kind == "group" else groups_of(a.tasks, chosen)
            found = _compared(scores(a, chosen), scores(b, chosen), groups, question, copied=False)
            rows.append(_stratum(kind, name, found))
    return rows


def _stratum(kind: str, name: str | None, found: PairedComparison | None) -> dict[str, Any]:
    keys = ("n_tasks", "n_trials", "mean_a", "mean_b", "difference", "ci_low", "ci_high", "p_exact")
    counts = ("n_tasks", "n_trials")
    numbers = {key: getattr(found, key) if found else (0 if key in counts else None) for key in keys}
    return {"by": kind, "name": name, **numbers}
