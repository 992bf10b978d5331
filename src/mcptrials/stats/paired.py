"""The comparison of two arms on the tasks that they share."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import StatisticsError, correlation, fmean
from typing import Literal

from mcptrials.counting import counted
from mcptrials.shares import percent
from mcptrials.stats.interval import Interval, all_pass_bound
from mcptrials.stats.permutation import Pair, deal, permutation_p, smallest_p
from mcptrials.stats.quantile import t_quantile, t_tail
from mcptrials.stats.rate import Scope, checked_scope, checked_trials, estimate
from mcptrials.stats.sign_flip import sign_flip_interval, sign_flip_p
from mcptrials.stats.stratified import stratified_interval
from mcptrials.stats.task_mean import average_tasks

Verdict = Literal["better", "worse", "equivalent", "inconclusive"]

ALPHA = 0.05
FEWEST_UNITS = 6
"""2/2^5 is above 5 %: with fewer units that differ the sign-flip test can never decide."""
BESIDE_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Arm b less arm a over the tasks that both have trials of; None is what the trials cannot tell."""

    difference: float
    se: float | None
    ci_low: float | None
    ci_high: float | None
    correlation: float | None
    """Of the task means of both arms; None when an arm's do not vary."""
    p_exact: float | None
    """The p that decides: by sign flips for tasks like these, within tasks for these tasks."""
    p_t: float | None
    """Student's t of the same differences, for comparison; only for tasks like these."""
    n_tasks: int
    n_changed: int
    """Tasks whose means differ."""
    verdict: Verdict
    """Of arm b."""
    reason: str
    """Why this verdict, in a line."""
    scope: Scope
    mean_a: float
    mean_b: float
    df: float | None = None
    ci_t: Interval | None = None
    """The interval by Student's t: for comparison with other tools, it decides nothing."""
    n_groups: int = 0
    """Independent units: groups of tasks, or the tasks themselves."""
    n_trials: int = 0
    """Trials of both arms."""
    unpaired: tuple[str, ...] = ()
    """Tasks with trials in one arm only: left out."""


@dataclass(frozen=True, slots=True)
class _Data:
    task_ids: tuple[str, ...]
    pairs: tuple[Pair, ...]
    groups: tuple[Hashable, ...]
    differences: tuple[float, ...]

    @property
    def units(self) -> tuple[list[float], list[int]]:
        """Summed difference and number of tasks of every group."""
        members: dict[Hashable, list[float]] = {}
        for group, difference in zip(self.groups, self.differences, strict=True):
            members.setdefault(group, []).append(difference)
        # Differences of means that cancel leave dust, which would count as a change.
        return [round(math.fsum(each), 12) for each in members.values()], [len(each) for each in members.values()]


def compare_paired(
    a: Mapping[str, Sequence[float]],
    b: Mapping[str, Sequence[float]],
    groups: Mapping[str, str] | None = None,
    scope: Scope = "tasks-like-these",
    margin: float | None = None,
    copied: bool = False,
) -> PairedComparison:
    """Compare arm b with arm a, task by task.

    d_i = mean_bi - mean_ai; the difference is the mean of d_i over the common tasks (trials are not paired).
    `tasks-like-these`: SE and df of `average_tasks` on d_i; `p_exact` of `sign_flip_p`, flipping whole groups; the
    interval inverts that very test, and is widened where nearly all tasks changed alike, by the share of tasks that
    could be of a kind unseen. `these-tasks`: SE = sqrt(sum_i s_ai^2/K_ai + s_bi^2/K_bi)/n; `permutation_p` with
    `stratified_interval`. Better or worse when `p_exact` <= 5 %. With a `margin`, equivalent when two one-sided tests
    at 5 % each (the 90 % interval) keep the difference within it and there are tasks enough for an unseen kind of task
    to be rarer than the margin.
    Source: Miller 2024, arXiv:2411.00640, section 4; see the named functions; Schuirmann 1987 (J. Pharmacokinetics and
    Biopharmaceutics 15) on two one-sided tests.
    Units: scores in [0, 1], differences in [-1, 1]. Assumes independent groups (or tasks) and, for `these-tasks`,
    independent trials.

    Args:
        a: the scores of the scored trials of the baseline, by task.
        b: the same of the arm that is judged.
        groups: the group of a task that is not independent of others; a task not named is on its own.
        scope: what the verdict is about: tasks that one could have written, or exactly these.
        margin: a difference below it does not matter.
        copied: trials repeat each other more than chance would (see `count_copies`): `these-tasks` is then refused.

    Raises:
        ValueError: no common task, a score outside [0, 1], an unknown scope, or a margin outside (0, 1].
    """
    checked_scope(scope)
    if margin is not None and not 0 < margin <= 1:
        raise ValueError(f"margin {margin!r}: expected a number above 0 and at most 1")
    a, b = checked_trials(a, "a"), checked_trials(b, "b")
    data = _pair(a, b, groups)
    found = _described(data, scope, tuple(sorted(set(a) ^ set(b))))
    if scope == "tasks-like-these":
        return _judged(_for_tasks_like_these(found, data), data, margin)
    if copied:
        return replace(found, reason="trials repeat each other: these-tasks needs independent ones; tasks are the unit")
    return _judged(_for_these_tasks(found, data), data, margin)


def _pair(
    a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]], groups: Mapping[str, str] | None
) -> _Data:
    task_ids = tuple(task_id for task_id in a if task_id in b)
    if not task_ids:
        raise ValueError(f"no task has scored trials in both arms: {len(a)} tasks in a, {len(b)} in b")
    return _Data(
        task_ids,
        tuple((a[task_id], b[task_id]) for task_id in task_ids),
        tuple((groups or {}).get(task_id, (task_id,)) for task_id in task_ids),
        tuple(round(fmean(b[task_id]) - fmean(a[task_id]), 12) for task_id in task_ids),
    )


def _described(data: _Data, scope: Scope, unpaired: tuple[str, ...]) -> PairedComparison:
    """Everything but the test: no interval, no p, no verdict."""
    means_a, means_b = [fmean(a) for a, _ in data.pairs], [fmean(b) for _, b in data.pairs]
    return PairedComparison(
        difference=fmean(means_b) - fmean(means_a),
        se=None,
        ci_low=None,
        ci_high=None,
        correlation=_correlation(means_a, means_b),
        p_exact=None,
        p_t=None,
        n_tasks=len(data.pairs),
        n_changed=sum(each != 0 for each in data.differences),
        verdict="inconclusive",
        reason="",
        scope=scope,
        mean_a=fmean(means_a),
        mean_b=fmean(means_b),
        n_groups=len(set(data.groups)),
        n_trials=sum(len(a) + len(b) for a, b in data.pairs),
        unpaired=unpaired,
    )


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    try:
        return correlation(a, b)
    except StatisticsError:
        return None


def _for_tasks_like_these(found: PairedComparison, data: _Data) -> PairedComparison:
    sums, sizes = data.units
    p = sign_flip_p(sums)
    tested = _allowing_for_unseen(_sign_flip_interval(sums, sizes, ALPHA), sums, sizes)
    low, high = _beside_zero(tested, p, found.difference)
    found = replace(found, p_exact=p, ci_low=low, ci_high=high)
    if found.n_groups == 1:
        return found
    x = average_tasks(data.differences, found.n_trials, data.groups)
    if x.se == 0:
        return replace(found, se=0.0, df=x.df)
    half = t_quantile(1 - ALPHA / 2, x.df) * x.se
    interval = Interval(found.difference - half, found.difference + half)
    return replace(found, se=x.se, df=x.df, p_t=t_tail(found.difference / x.se, x.df), ci_t=interval)


def _sign_flip_interval(sums: Sequence[float], sizes: Sequence[int], alpha: float) -> Interval:
    """The test of nothing but zeros leaves the point 0, also where it could not decide."""
    return sign_flip_interval(sums, sizes, alpha) if any(sums) else Interval(0.0, 0.0)


def _allowing_for_unseen(interval: Interval, sums: Sequence[float], sizes: Sequence[int]) -> Interval:
    """The interval, widened where nearly all units changed alike: tasks of a kind unseen may be wholly other.

    After n units alike up to 1 - 0.05^(1/n) of tasks can be of that kind, and differ by anything from -1 to 1. Each
    unit that is unlike the others says something of the scatter; from `FEWEST_UNITS` of them the test is left alone.
    Without it 6 to 10 tasks that nearly all went from 0 to 1 are covered in 43 to 71 % only.
    """
    changes = Counter(round(total / size, 9) for total, size in zip(sums, sizes, strict=True))
    unlike = len(sums) - changes.most_common(1)[0][1]
    share = all_pass_bound(len(sums)) * max(0.0, 1 - unlike / FEWEST_UNITS)
    low, high = interval
    return Interval(low - share * (1 + low), high + share * (1 - high))


def _for_these_tasks(found: PairedComparison, data: _Data) -> PairedComparison:
    a = {task_id: pair[0] for task_id, pair in zip(data.task_ids, data.pairs, strict=True)}
    b = {task_id: pair[1] for task_id, pair in zip(data.task_ids, data.pairs, strict=True)}
    estimates = estimate(a, scope="these-tasks"), estimate(b, scope="these-tasks")
    dealing = deal(data.pairs)
    p = permutation_p(data.pairs, dealing)
    low, high = _beside_zero(stratified_interval(data.pairs, dealing, ALPHA), p, found.difference)
    errors = [each.se for each in estimates if each.se is not None]
    se = math.hypot(*errors) if len(errors) == len(estimates) else None
    return replace(found, p_exact=p, ci_low=low, ci_high=high, se=se)


def _beside_zero(interval: Interval, p: float, difference: float) -> Interval:
    """The interval, of which an approximated end that contradicts the exact p at 0 is moved to the right side of 0."""
    low, high = interval
    if p <= ALPHA and difference > 0:
        return Interval(max(low, BESIDE_ZERO), high)
    if p <= ALPHA and difference < 0:
        return Interval(low, min(high, -BESIDE_ZERO))
    return Interval(min(low, 0.0) + 0.0, max(high, 0.0) + 0.0)


def _judged(found: PairedComparison, data: _Data, margin: float | None) -> PairedComparison:
    direction: Verdict = "better" if found.difference > 0 else "worse"
    decided = found.p_exact is not None and found.p_exact <= ALPHA
    if margin is not None and _within(found, data, margin):
        aside = f"; {direction} by less than that" if decided else ""
        return replace(found, verdict="equivalent", reason=f"both one-sided tests keep it within {margin:g}{aside}")
    if decided:
        return replace(found, verdict=direction, reason=f"exact p = {found.p_exact:.3g}, at most {ALPHA}")
    return replace(found, reason=_why_inconclusive(found, data))


def _within(found: PairedComparison, data: _Data, margin: float) -> bool:
    """Two one-sided tests at 5 %: the 90 % interval lies within the margin."""
    if found.p_exact is None:
        return False
    if found.scope == "these-tasks":
        low, high = stratified_interval(data.pairs, deal(data.pairs), 2 * ALPHA)
        return -margin < low and high < margin
    low, high = _sign_flip_interval(*data.units, 2 * ALPHA)
    # Tasks that differ wholly but are rare may all be missing from a small suite, whatever the trials say.
    return -margin < low and high < margin and all_pass_bound(found.n_groups) <= margin


def _why_inconclusive(found: PairedComparison, data: _Data) -> str:
    if found.n_changed == 0:
        bound = f"; up to {percent(found.ci_high)} of tasks like these could differ unseen"
        return "no task changed" + (bound if found.scope == "tasks-like-these" else "")
    if found.scope == "these-tasks":
        least = smallest_p(data.pairs)
        return f"trials as few as these cannot give p below {least:.2g}" if least > ALPHA else _p_is_too_large(found)
    unit = "task" if found.n_groups == found.n_tasks else "group"
    if found.n_groups < FEWEST_UNITS:
        return f"{counted(found.n_groups, unit)}: the exact test needs at least {FEWEST_UNITS} to decide anything"
    changed = sum(each != 0 for each in data.units[0])
    if changed < FEWEST_UNITS:
        return (
            f"only {changed} of {found.n_groups} {unit}s differ: with fewer than {FEWEST_UNITS} p cannot reach {ALPHA}"
        )
    if found.p_t is not None and found.p_t <= ALPHA:
        return f"the t interval excludes 0, but the exact p = {found.p_exact:.3g}"
    return _p_is_too_large(found)


def _p_is_too_large(found: PairedComparison) -> str:
    return f"exact p = {found.p_exact:.3g}: the data fit no difference as well"
