"""How much of the scatter lies between tasks, and how much between the trials of one task."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from mcptrials.stats.rate import checked_trials


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Between-task and within-task variance; None where the trials cannot tell."""

    sigma2: float | None
    """Within tasks: the noise of a trial. None without a task that has two trials."""
    omega2: float | None
    """Between tasks: the difference in difficulty. None with fewer than two such tasks."""
    icc: float | None
    """omega2 / (omega2 + sigma2): how alike two trials of one task are. None when nothing varies."""
    n_tasks: int
    """Tasks with at least two scored trials: only these can be used."""


def variance_components(trials_by_task: Mapping[str, Sequence[float]]) -> VarianceComponents:
    """Split the variance of scores into the parts between and within tasks.

    sigma2 = mean_i s_i^2; omega2 = Var_i(mean_i) - mean_i(s_i^2 / K_i), clipped at 0; s_i^2 with K_i - 1.
    With equal K it is the one-way ANOVA (MSB - MSW)/K. Source: Searle, Casella and McCulloch 1992, chapter 3; unlike
    Miller 2024 (arXiv:2411.00640, appendix C) the trial noise is subtracted from the variance of the task means.
    Unit: the score's, squared. Assumes independent tasks and, within a task, independent trials.

    Raises:
        ValueError: a score outside [0, 1].
    """
    tasks = [trials for trials in checked_trials(trials_by_task).values() if len(trials) > 1]
    if not tasks:
        return VarianceComponents(None, None, None, 0)
    noise = [variance(trials) for trials in tasks]
    sigma2 = fmean(noise)
    if len(tasks) == 1:
        return VarianceComponents(sigma2, None, None, 1)
    noise_of_means = fmean(s2 / len(trials) for s2, trials in zip(noise, tasks, strict=True))
    omega2 = max(0.0, variance([math.fsum(trials) / len(trials) for trials in tasks]) - noise_of_means)
    total = omega2 + sigma2
    return VarianceComponents(sigma2, omega2, omega2 / total if total > 0 else None, len(tasks))
