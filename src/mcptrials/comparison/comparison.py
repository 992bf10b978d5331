"""Comparison: every number of two or more sides against one baseline, and the verdict."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcptrials.comparison.behaviour import error_texts, first_calls, wrong_calls
from mcptrials.comparison.conditions import check_conditions, concurrency
from mcptrials.comparison.flips import task_rows
from mcptrials.comparison.measures import measure_rows
from mcptrials.comparison.pairing import Pairing, pair
from mcptrials.comparison.power_line import power_of_pair
from mcptrials.comparison.side import Side, find_sides
from mcptrials.comparison.success import (
    Question,
    as_found,
    compared,
    groups_of,
    scores,
    side_row,
    strata,
    surviving,
    worst_cases,
)
from mcptrials.comparison.tool_lists import tool_changes
from mcptrials.counting import counted
from mcptrials.errors import UsageError
from mcptrials.record import SCHEMA_VERSION
from mcptrials.stats import PairedComparison, Scope, holm
from mcptrials.store import Run

ALPHA = 0.05
MANY_COPIES = 0.5
MIN_TASKS = 5
"""Below, a verdict over tasks cannot be had."""


def compare(
    *runs: Run | str | Path,
    allow: Collection[str] = (),
    scope: Scope = "tasks-like-these",
    margin: float | None = None,
) -> dict[str, Any]:
    """Compares runs, or arms of runs, with the first of them, task by task.

    Args:
        runs: run folders, `FOLDER:ARM`, or runs; of a single one all its arms.
        allow: conditions that may differ: model, effective_model, host, judges, limits, policies.
        scope: what the verdict is about: tasks like these, or exactly these.
        margin: a difference of success below it does not matter.

    Raises:
        UsageError: they cannot be compared; names why.
    """
    loaded = {str(run.folder) if isinstance(run, Run) else str(run): run for run in runs}

    def find(name: str) -> Run:
        run = loaded.get(name)
        return run if isinstance(run, Run) else Run.load(name)

    return compare_sides(find_sides(loaded, find), allow, Question(scope, margin))


def compare_sides(sides: Sequence[Side], allow: Collection[str], question: Question) -> dict[str, Any]:
    """The document of a comparison; the first side is the baseline.

    Raises:
        UsageError: as in `compare`.
    """
    if question.margin is not None and not 0 < question.margin <= 1:
        raise UsageError(f"the margin {question.margin:g} is no share", hint="give one above 0 and at most 1, as 0.05")
    baseline, *others = sides
    found = [_compared(baseline, each, allow, question) for each in others]
    return {
        "schema_version": SCHEMA_VERSION,
        "scope": question.scope,
        "margin": question.margin,
        "scripted": any(side.arm.model.startswith("scripted:") for side in sides),
        "comparisons": _for_their_number(found),
    }


def _compared(a: Side, b: Side, allow: Collection[str], question: Question) -> dict[str, Any]:
    differing = check_conditions(a, b, allow)
    pairing = pair(a, b)
    tasks = pairing.paired
    if not tasks:
        raise UsageError(_nothing_in_common(pairing), where=f"{a.name} and {b.name}", hint=_HINT)
    found = compared(a, b, tasks, question)
    row_a, row_b = (side_row(side, tasks, question.scope) for side in (a, b))
    unscored = row_a["not_scored"] + row_b["not_scored"]
    worst = worst_cases(a, b, tasks, question) if unscored else as_found(found)
    when = concurrency(a, b)
    return {
        "a": row_a,
        "b": row_b,
        **_numbers(surviving(found, worst, unscored) if found else None),
        "p_adjusted": None,
        "power": _power(a, b, tasks, found) if found else None,
        "worst_case": worst,
        "tasks": pairing.document(),
        "changed_tasks": task_rows(a, b, tasks),
        "strata": strata(a, b, tasks, question),
        "measures": measure_rows(a, b, tasks, groups_of(a.tasks, tasks)),
        "first_calls": {"a": first_calls(a, tasks), "b": first_calls(b, tasks)},
        "wrong_calls": {"a": wrong_calls(a, tasks), "b": wrong_calls(b, tasks)},
        "errors": error_texts(a, b, tasks),
        "tools": tool_changes(a, b),
        "conditions": [each.document() for each in differing],
        "concurrency": when,
        "warnings": _warnings(row_a, row_b, pairing, when),
    }


def _power(a: Side, b: Side, tasks: Sequence[str], found: PairedComparison) -> dict[str, Any] | None:
    seed = a.stated("seed")
    groups = groups_of(a.tasks, tasks)
    return power_of_pair(
        scores(a, tasks), scores(b, tasks), found.difference, groups, seed if isinstance(seed, int) else 0
    )


_GRADE_AGAIN = "grade both runs again with the same graders: mcptrials grade RUN"
_HINT = "compare runs of the same tasks, or arms of one run"


def _nothing_in_common(pairing: Pairing) -> str:
    if pairing.untried:
        return f"no task was tried on both sides: {_ids(pairing.untried)}"
    if pairing.edited:
        again = f"; {_GRADE_AGAIN}" if any(what == "graders" for _, what in pairing.edited) else ""
        return (
            f"every common task was edited: {_ids([f'{task_id} ({what})' for task_id, what in pairing.edited])}{again}"
        )
    return "they have no task in common"


def _ids(names: Sequence[str], shown: int = 5) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


_KEYS = (
    *("difference", "se", "ci_low", "ci_high", "correlation", "p_exact", "p_t", "n_tasks", "n_changed", "n_groups"),
    *("verdict", "reason"),
)


def _numbers(found: PairedComparison | None) -> dict[str, Any]:
    if found is None:
        nothing = dict.fromkeys(_KEYS) | {"n_tasks": 0, "n_changed": 0, "n_groups": 0}
        return nothing | {"verdict": "inconclusive", "reason": "no task has a scored trial on both sides"}
    return {key: getattr(found, key) for key in _KEYS}


def _for_their_number(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Holm's p values for several comparisons with one baseline; a verdict must hold under them."""
    if len(found) == 1:
        return found
    adjusted = holm([_p(each) for each in found])
    worst = holm([max(_p(each), *map(_p, each["worst_case"].values())) for each in found])
    return [_adjusted(*each, len(found)) for each in zip(found, adjusted, worst, strict=True)]


def _p(found: Mapping[str, Any]) -> float:
    return 1.0 if found["p_exact"] is None else float(found["p_exact"])


def _adjusted(found: dict[str, Any], p: float, worst: float, count: int) -> dict[str, Any]:
    if found["p_exact"] is None:
        return found
    found = found | {"p_adjusted": p}
    if found["verdict"] not in ("better", "worse") or max(p, worst) <= ALPHA:
        return found
    one = f"once it is one of {count} comparisons (Holm)"
    if p > ALPHA:
        return found | {"verdict": "inconclusive", "reason": f"p = {p:.3g} {one}; {found['p_exact']:.3g} by itself"}
    reason = f"p = {p:.3g} {one}, and could be {worst:.3g} if trials that are not scored were"
    return found | {"verdict": "inconclusive", "reason": reason}


def _warnings(a: dict[str, Any], b: dict[str, Any], pairing: Pairing, when: dict[str, Any]) -> list[str]:
    found = []
    if when["concurrent"] is False:
        found.append(f"not concurrent ({when['how']}): what drifted meanwhile is part of the difference")
    for side in (a, b):
        if side["missing"]:
            found.append(
                f"{side['name']} is incomplete: {counted(side['missing'], 'trial was', 'trials were')} not run"
            )
        if (side["share_copies"] or 0) > MANY_COPIES:
            found.append(f"{side['name']}: most trials repeat another of their task word for word, and add little")
    if a["split"] != b["split"]:
        found.append(f"the splits differ: {a['split']} and {b['split']}")
    if pairing.untried:
        found.append(f"left out, not tried on both sides: {counted(len(pairing.untried), 'task')}")
    if len(pairing.paired) < MIN_TASKS:
        found.append(
            f"too few tasks for inference: {len(pairing.paired)}; at least {MIN_TASKS} are needed, 20 are a start"
        )
    return found
