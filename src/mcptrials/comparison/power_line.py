"""What a comparison could detect, and what it would take to see the difference that was found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, variance
from typing import Any

from mcptrials.counting import counted
from mcptrials.stats import PairedDesign, design_of, minimal_detectable_effect, power_of, required_tasks

POWER = 0.8
MOST_TRIALS = 200
"""Per task; what needs more is better met with tasks."""
SMALLEST = 0.005
"""A difference below half a point is not asked for."""

Scores = Mapping[str, Sequence[float]]


def power_of_pair(a: Scores, b: Scores, difference: float, *, grouped: bool = False) -> dict[str, Any] | None:
    """The numbers and the line; None when the trials at hand have no spread to reckon with.

    Args:
        grouped: tasks come in groups; the reckoning is for tasks that do not, and the line says so.
    """
    shared = [task_id for task_id in a if task_id in b]
    design = design_of(a, b) or _without_trials([fmean(b[each]) - fmean(a[each]) for each in shared])
    if design is None or design.task_variance == 0:
        return None
    detectable = minimal_detectable_effect(design, len(shared), POWER)
    wanted = abs(difference) if abs(difference) >= SMALLEST else None
    found: dict[str, Any] = {
        "power": POWER,
        "detectable": detectable if detectable <= 1 else None,
        "difference": wanted,
        "more_tasks": None if wanted is None else max(0, required_tasks(design, wanted, POWER) - len(shared)),
        "trials_per_task": None if wanted is None else _trials(design, len(shared), wanted),
        "noise": _noise(design),
    }
    return found | {"line": _line(found, difference) + (", counting each task as its own group" if grouped else "")}


def _without_trials(differences: Sequence[float]) -> PairedDesign | None:
    """With one trial per task its own noise is part of what differs between tasks."""
    if len(differences) < 2:  # noqa: PLR2004 - a variance needs two
        return None
    return PairedDesign(omega2=variance(differences), sigma2=(0.0, 0.0), trials=(1, 1))


def _trials(design: PairedDesign, n_tasks: int, difference: float) -> int | None:
    """The fewest trials per task and arm that are enough with these tasks; None when no number is."""
    if not any(design.sigma2):
        return None

    def enough(trials: int) -> bool:
        return power_of(replace(design, trials=(trials, trials)), n_tasks, difference) >= POWER

    low, high = 0, MOST_TRIALS
    if not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _noise(design: PairedDesign) -> str | None:
    if not any(design.sigma2):
        return None
    return "between tasks" if design.omega2 > design.task_variance / 2 else "within tasks"


def _line(found: Mapping[str, Any], difference: float) -> str:
    detectable = found["detectable"]
    least = "cannot detect any difference" if detectable is None else f"detect {100 * detectable:.0f} points"
    line = f"these tasks and trials {least} at {100 * POWER:.0f} % power"
    if found["difference"] is None:
        return line
    more, trials = found["more_tasks"], found["trials_per_task"]
    needed = counted(more, "more task") if more else "no more tasks"
    others = f", or {counted(trials, 'trial')} a task" if trials and more else ""
    noise = f"; noise {found['noise']} dominates" if found["noise"] else ""
    return f"{line}; to see {100 * difference:+.0f} points: {needed}{others}{noise}"
