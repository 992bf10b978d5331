"""What a comparison could detect, and what it would take to see the difference that was found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, variance
from typing import Any

from mcptrials.counting import counted
from mcptrials.stats import PairedDesign, design_of
from mcptrials.stats.chance import Chances, Experiment
from mcptrials.stats.paired import FEWEST_UNITS

POWER = 0.8
SMALLEST = 0.005
"""A difference below half a point is not asked for."""
MOST_NOISE = 0.25
"""The variance of a trial cannot be more."""

Scores = Mapping[str, Sequence[float]]


def power_of_pair(
    a: Scores, b: Scores, difference: float, groups: Mapping[str, str] | None, seed: int
) -> dict[str, Any] | None:
    """The numbers and the line, as `mcptrials power` reckons them; None when the trials have no spread to reckon with.

    Args:
        groups: the group of a task that is in one.
        seed: of the simulation.
    """
    shared = [task_id for task_id in a if task_id in b]
    measured = design_of(a, b)
    design = measured or _of_single_trials([fmean(b[each]) - fmean(a[each]) for each in shared])
    if design is None or design.task_variance == 0:
        return None
    sizes = Counter((groups or {}).get(task_id, (task_id,)) for task_id in shared)
    plan, chances = Experiment(tuple(sizes.values()), design), Chances(seed)
    wanted = abs(difference) if abs(difference) >= SMALLEST else None
    needed = None if wanted is None else chances.tasks_needed(plan, wanted, POWER)
    tells_trials = measured is not None and any(measured.sigma2)
    found: dict[str, Any] = {
        "power": POWER,
        "detectable": chances.detectable(plan, POWER),
        "difference": wanted,
        "more_tasks": None if needed is None else max(0, needed - len(shared)),
        "trials_per_task": chances.trials_needed(plan, wanted, POWER) if wanted and tells_trials else None,
        "noise": _noise(design) if tells_trials else None,
    }
    return found | {"line": _line(found, difference, plan)}


def _of_single_trials(differences: Sequence[float]) -> PairedDesign | None:
    """With one trial per task the sum of both variances is known, and the sum is all that counts."""
    if len(differences) < 2:  # noqa: PLR2004 - a variance needs two
        return None
    both = variance(differences)
    of_trial = min(both / 2, MOST_NOISE)
    return PairedDesign(omega2=both - 2 * of_trial, sigma2=(of_trial, of_trial), trials=(1, 1))


def _noise(design: PairedDesign) -> str:
    return "between tasks" if design.omega2 > design.task_variance / 2 else "within tasks"


def _line(found: Mapping[str, Any], difference: float, plan: Experiment) -> str:
    line = _detects(found["detectable"], plan)
    if found["difference"] is None:
        return line
    more, trials = found["more_tasks"], found["trials_per_task"]
    needed = "more tasks than can be meant" if more is None else counted(more, "more task") if more else "no more tasks"
    others = f", or {counted(trials, 'trial')} a task" if trials and more != 0 else ""
    noise = f"; noise {found['noise']} dominates" if found["noise"] else ""
    return f"{line}; to see {100 * difference:+.0f} points: {needed}{others}{noise}"


def _detects(detectable: float | None, plan: Experiment) -> str:
    if not plan.can_decide:
        units, grouped = len(plan.sizes), len(plan.sizes) < plan.n_tasks
        what = counted(units, "group of tasks", "groups of tasks") if grouped else counted(units, "task")
        return f"{what} can never decide: the test needs {FEWEST_UNITS} that differ"
    least = "cannot detect any difference" if detectable is None else f"detect {100 * detectable:.0f} points"
    return f"these tasks and trials {least} at {100 * POWER:.0f} % power"
