"""What trials spend, compared task by task as success is: tokens, calls, errors, time, cost."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import fmean
from typing import Any

from mcptrials.comparison.side import Side
from mcptrials.record import Record
from mcptrials.stats import average_tasks, t_quantile

TWO_SIDED = 0.975


def _tokens(record: Record) -> float | None:
    parts = (record.input_tokens, record.output_tokens)
    return None if None in parts else float(sum(part or 0 for part in parts))


MEASURES: Mapping[str, Callable[[Record], float | None]] = {
    "tokens": _tokens,
    "tool_calls": lambda record: record.tool_calls,
    "tool_errors": lambda record: record.tool_errors + record.protocol_errors,
    "duration_ms": lambda record: record.duration_ms,
    "cost_usd": lambda record: record.cost_usd,
}
"""By name; None is "not measured"."""


def measure_rows(a: Side, b: Side, tasks: Sequence[str], groups: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """Each measure on both sides, per trial, with the difference and its interval."""
    return [_row(name, _means(a, tasks, of), _means(b, tasks, of), groups) for name, of in MEASURES.items()]


def _means(side: Side, tasks: Sequence[str], of: Callable[[Record], float | None]) -> dict[str, tuple[float, int]]:
    """The mean of each task's scored trials, and their number; one unknown makes it unknown."""
    means = {}
    for task_id in tasks:
        values = [of(record) for record in side.by_task[task_id] if record.scored]
        if (known := [value for value in values if value is not None]) and len(known) == len(values):
            means[task_id] = (fmean(known), len(known))
    return means


def _row(
    name: str,
    a: Mapping[str, tuple[float, int]],
    b: Mapping[str, tuple[float, int]],
    groups: Mapping[str, str] | None,
) -> dict[str, Any]:
    shared = [task_id for task_id in a if task_id in b]
    if not shared:
        empty = dict.fromkeys(("a", "b", "difference", "ci_low", "ci_high", "relative", "relative_ci"))
        return {"name": name, "n_tasks": 0, **empty}
    mean_a, mean_b = fmean(a[each][0] for each in shared), fmean(b[each][0] for each in shared)
    difference = mean_b - mean_a
    half = _half_width(
        [b[each][0] - a[each][0] for each in shared], [(groups or {}).get(each, (each,)) for each in shared]
    )
    low, high = (None, None) if half is None else (difference - half, difference + half)
    return {
        "name": name,
        "n_tasks": len(shared),
        "a": mean_a,
        "b": mean_b,
        "difference": difference,
        "ci_low": low,
        "ci_high": high,
        # Of the baseline's mean as it was found: its own uncertainty is left out, and the text says "of A".
        "relative": difference / mean_a if mean_a else None,
        "relative_ci": [low / mean_a, high / mean_a] if mean_a and low is not None and high is not None else None,
    }


def _half_width(differences: Sequence[float], groups: Sequence[Hashable]) -> float | None:
    """Of the interval by Student's t with the groups' standard error; one unit has no spread."""
    if len(set(groups)) < 2:  # noqa: PLR2004
        return None
    found = average_tasks(differences, len(differences), groups)
    return t_quantile(TWO_SIDED, found.df) * found.se
