"""The estimate that every rate is shown with: a mean over tasks, its uncertainty, and the numbers behind it."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, SupportsFloat, get_args

from mcptrials.stats.interval import Interval, shrunk_trials, wilson_interval, wilson_neff, wilson_shrunk
from mcptrials.stats.pass_k import pass_at_k, pass_hat_k
from mcptrials.stats.task_mean import average_tasks

Scope = Literal["tasks-like-these", "these-tasks"]
"""What the uncertainty is about: the tasks that one could have written, or a second run of exactly these."""

NUMBERS = (float, int, SupportsFloat)
"""Plain ones first: asking about the last is slow, and arrays hold numbers of their own."""

Method = Literal[
    "wilson_shrunk", "wilson_trials", "wilson_trials, this task only", "wilson_trials, this group of tasks only"
]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks with its 95 % interval; None is what the trials at hand cannot tell."""

    mean: float | None = None
    se: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    df: float | None = None
    """Degrees of freedom of the t quantile; None when the interval uses the normal one."""
    n_tasks: int = 0
    """Tasks that could be used."""
    n_trials: int = 0
    """Scored trials of those tasks."""
    n_eff: float | None = None
    """Trials that the interval counts as independent."""
    method: Method | None = None
    n_groups: int = 0
    """Independent units: groups of tasks, or the tasks themselves."""
    ci_neff: Interval | None = None
    """`wilson_neff` of the same data, for comparison with other tools; only beside `wilson_shrunk`."""


@dataclass(frozen=True, slots=True)
class _TaskScore:
    group: Hashable
    score: float
    variance: float | None
    """Of the score, were this very task tried again; None with too few trials to know."""
    n_trials: int
    n_draws: int
    """Independent looks at the quantity scored: trials, or disjoint sets of k trials."""


_Scorer = Callable[[Hashable, Sequence[float]], _TaskScore]


def estimate(
    trials_by_task: Mapping[str, Sequence[float]],
    groups: Mapping[str, str] | None = None,
    scope: Scope = "tasks-like-these",
) -> Estimate:
    """The mean over tasks of the mean score of a task's trials.

    `tasks-like-these`: SE and df of `average_tasks`, interval `wilson_shrunk`. One task (or one group) has no such
    interval: it gets the one below, and `method` says so.
    `these-tasks`: SE = sqrt(sum_i s_i^2/K_i) / n; Wilson's interval with z on all trials, conservative because
    sum_i p_i (1 - p_i) <= n p (1 - p). With unequal K_i they count as n^2 / sum_i (1/K_i) trials.
    Source: Miller 2024, arXiv:2411.00640, sections 2 and 3; for Wilson see `wilson_neff`.
    Units: scores and bounds in [0, 1]. Assumes independent trials and independent groups.

    Args:
        trials_by_task: the scores of the scored trials; a task without any is left out.
        groups: the group of a task that is not independent of others; a task not named is on its own.
        scope: what the uncertainty is about.

    Raises:
        ValueError: a score outside [0, 1], or an unknown scope.
    """
    return _estimate(_score_tasks(trials_by_task, groups, _score_mean), scope)


def estimate_pass_at(
    trials_by_task: Mapping[str, Sequence[float]],
    k: int,
    groups: Mapping[str, str] | None = None,
    scope: Scope = "tasks-like-these",
) -> Estimate:
    """The mean over tasks of `pass_at_k`; a task with fewer than `k` scored trials is left out (see `n_tasks`).

    Interval, units and assumptions as in `estimate`. For `these-tasks` a task counts as floor(K/k) trials, the disjoint
    sets of k, which bounds the estimator's variance (Hoeffding 1963, JASA 58, section 5); its SE needs 2k trials.

    Raises:
        ValueError: a score that is neither 0 nor 1, `k` < 1, or an unknown scope.
    """

    def score(group: Hashable, trials: Sequence[float]) -> _TaskScore:
        n, c = len(trials), _passes(trials)
        return _TaskScore(group, pass_at_k(n, c, k), _variance_of_all(n, n - c, k), n, n // k)

    return _estimate(_score_tasks(_with_k_trials(trials_by_task, k), groups, score), scope)


def estimate_pass_hat(
    trials_by_task: Mapping[str, Sequence[float]],
    k: int,
    groups: Mapping[str, str] | None = None,
    scope: Scope = "tasks-like-these",
) -> Estimate:
    """The mean over tasks of `pass_hat_k`; all else as in `estimate_pass_at`."""

    def score(group: Hashable, trials: Sequence[float]) -> _TaskScore:
        n, c = len(trials), _passes(trials)
        return _TaskScore(group, pass_hat_k(n, c, k), _variance_of_all(n, c, k), n, n // k)

    return _estimate(_score_tasks(_with_k_trials(trials_by_task, k), groups, score), scope)


def checked_trials(trials_by_task: Mapping[str, Sequence[float]], arm: str | None = None) -> dict[str, list[float]]:
    """The tasks that have trials, with their scores as plain numbers.

    Raises:
        ValueError: a score that is not a number in [0, 1]; it names the task, and the arm where there are several.
    """
    checked = {}
    for task_id, trials in trials_by_task.items():
        where = f"task {task_id!r}" if arm is None else f"arm {arm}, task {task_id!r}"
        if isinstance(trials, str) or not hasattr(trials, "__len__"):
            raise ValueError(f"{where}: {trials!r} is not a list of scores")
        outside = [score for score in trials if not (isinstance(score, NUMBERS) and _is_share(score))]
        if outside:
            raise ValueError(f"{where}: the score {outside[0]!r} is not in [0, 1]")
        if len(trials):
            checked[task_id] = [float(score) for score in trials]
    return checked


def _is_share(score: SupportsFloat) -> bool:
    try:
        return 0 <= float(score) <= 1
    except OverflowError:
        return False


def checked_scope(scope: Scope) -> Scope:
    """The scope, when there is one of that name.

    Raises:
        ValueError: there is none.
    """
    if scope not in get_args(Scope):
        raise ValueError(f"scope {scope!r}: expected one of {get_args(Scope)}")
    return scope


def _with_k_trials(trials_by_task: Mapping[str, Sequence[float]], k: int) -> dict[str, Sequence[float]]:
    if k < 1:
        raise ValueError(f"k={k!r}: expected at least 1")
    return {task_id: trials for task_id, trials in trials_by_task.items() if len(trials) >= k}


def _score_tasks(
    trials_by_task: Mapping[str, Sequence[float]], groups: Mapping[str, str] | None, score: _Scorer
) -> list[_TaskScore]:
    return [
        score((groups or {}).get(task_id, (task_id,)), trials)
        for task_id, trials in checked_trials(trials_by_task).items()
    ]


def _score_mean(group: Hashable, trials: Sequence[float]) -> _TaskScore:
    n, mean = len(trials), fmean(trials)
    squares = math.fsum((trial - mean) ** 2 for trial in trials)
    return _TaskScore(group, mean, squares / (n - 1) / n if n > 1 else None, n, n)


def _passes(trials: Sequence[float]) -> int:
    unclear = [trial for trial in trials if trial not in (0, 1)]
    if unclear:
        raise ValueError(f"a trial scored {unclear[0]!r}: expected 0 or 1, as pass@k and pass^k count passes")
    return sum(trial == 1 for trial in trials)


def _variance_of_all(n: int, c: int, k: int) -> float | None:
    """The unbiased variance of C(c, k)/C(n, k), the estimator of p^k: its square less the estimator of p^2k."""
    return max(0.0, pass_hat_k(n, c, k) ** 2 - pass_hat_k(n, c, 2 * k)) if n >= 2 * k else None


def _estimate(tasks: Sequence[_TaskScore], scope: Scope) -> Estimate:
    checked_scope(scope)
    if not tasks:
        return Estimate()
    if scope == "these-tasks":
        return _fixed(tasks, "wilson_trials")
    if len(tasks) == 1:
        return _fixed(tasks, "wilson_trials, this task only")
    if len({task.group for task in tasks}) == 1:
        return _fixed(tasks, "wilson_trials, this group of tasks only")
    return _population(tasks)


def _population(tasks: Sequence[_TaskScore]) -> Estimate:
    n_trials = sum(task.n_trials for task in tasks)
    x = average_tasks([task.score for task in tasks], n_trials, [task.group for task in tasks])
    low, high = wilson_shrunk(x)
    return Estimate(
        mean=x.mean,
        se=x.se,
        ci_low=low,
        ci_high=high,
        df=x.df,
        n_tasks=len(tasks),
        n_trials=n_trials,
        n_eff=shrunk_trials(x),
        method="wilson_shrunk",
        n_groups=x.n_groups,
        ci_neff=wilson_neff(x),
    )


def _fixed(tasks: Sequence[_TaskScore], method: Method) -> Estimate:
    n = len(tasks)
    mean = fmean(task.score for task in tasks)
    variances = [task.variance for task in tasks if task.variance is not None]
    n_eff = n * n / math.fsum(1 / task.n_draws for task in tasks)
    low, high = wilson_interval(mean * n_eff, n_eff)
    return Estimate(
        mean=mean,
        se=math.sqrt(math.fsum(variances)) / n if len(variances) == n else None,
        ci_low=low,
        ci_high=high,
        n_tasks=n,
        n_trials=sum(task.n_trials for task in tasks),
        n_eff=n_eff,
        method=method,
        n_groups=len({task.group for task in tasks}),
    )
