"""The mean of a score over tasks, with a standard error that knows which tasks belong together."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

ROUNDING = 1e-12
"""A standard error below this is floating-point dust on scores that do not vary."""


@dataclass(frozen=True, slots=True)
class TaskMean:
    """A mean over tasks and what an interval around it is made of."""

    mean: float
    se: float
    df: float
    n_trials: int
    n_groups: int
    """Independent units: groups of tasks, or the tasks themselves."""
    minority: int
    """The smaller of the numbers of units that did not score a plain 1, and not a plain 0."""


def average_tasks(scores: Sequence[float], n_trials: int, groups: Sequence[Hashable] | None = None) -> TaskMean:
    """The mean of one score in [0, 1] per task, with its standard error for tasks like these.

    With u_i the deviation of task i, n_g of n tasks in group g, f_g = n_g/n:
    SE = sqrt(sum_g (sum_{i in g} u_i)^2 / (1 - f_g)) / n                                    (CR2), and
    df = 1 / (sum_g f_g^2 + sum_{g != h} f_g^2 f_h^2 / ((1 - f_g)(1 - f_h)))                 (Bell-McCaffrey);
    without `groups` these are the ordinary sd/sqrt(n) and n - 1.
    Source: Bell and McCaffrey 2002 (Survey Methodology 28), for a model with an intercept only; the reason to average
    per task first: Miller 2024, arXiv:2411.00640, section 3.1.
    Units: those of the scores. Assumes that the groups, or the tasks, are independent draws.

    Raises:
        ValueError: fewer than two groups, as many labels as there are not tasks, or a score that is not finite.
    """
    if not all(map(math.isfinite, scores)):
        raise ValueError("a score is not finite")
    members = _by_group(scores, range(len(scores)) if groups is None else groups)
    if len(members) < 2:  # noqa: PLR2004 - one unit has no spread
        raise ValueError(f"{len(members)} independent unit(s): the spread needs at least two")
    mean = math.fsum(scores) / len(scores)
    return TaskMean(
        mean=mean,
        se=_standard_error(members, mean),
        df=_degrees_of_freedom([len(group) for group in members]),
        n_trials=n_trials,
        n_groups=len(members),
        minority=min(sum(min(group) < 1 for group in members), sum(max(group) > 0 for group in members)),
    )


def _by_group(scores: Sequence[float], groups: Sequence[Hashable]) -> list[list[float]]:
    members: dict[Hashable, list[float]] = {}
    for score, group in zip(scores, groups, strict=True):
        members.setdefault(group, []).append(score)
    return list(members.values())


def _standard_error(members: Sequence[Sequence[float]], mean: float) -> float:
    n = sum(len(group) for group in members)
    deviations = [(math.fsum(score - mean for score in group), 1 - len(group) / n) for group in members]
    se = math.sqrt(math.fsum(total * total / rest for total, rest in deviations)) / n
    return se if se > ROUNDING else 0.0


def _degrees_of_freedom(sizes: Sequence[int]) -> float:
    if len(set(sizes)) == 1:
        return float(len(sizes) - 1)
    n = sum(sizes)
    shares = [size / n for size in sizes]
    leverages = [share * share / (1 - share) for share in shares]
    pairs = math.fsum(leverages) ** 2 - math.fsum(leverage * leverage for leverage in leverages)
    return 1 / (math.fsum(share * share for share in shares) + pairs)
