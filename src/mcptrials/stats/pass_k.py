"""pass@k and pass^k of one task: at least one, or every one, of k trials passes."""

import math
from collections.abc import Mapping, Sequence


def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of `k` trials passes, from `c` passes in `n` trials of one task.

    1 - C(n-c, k) / C(n, k): the share of the k-subsets of the trials that hold a pass, which is unbiased.
    Source: Chen et al. 2021, arXiv:2107.03374, eq. 1.
    Unit: a probability; NaN when n < k. Assumes that the trials are independent and alike.

    Raises:
        ValueError: the counts are impossible (c > n, a negative number, or k < 1).
    """
    _check_counts(n, c, k)
    if n < k:
        return math.nan
    subsets = math.comb(n, k)
    return (subsets - math.comb(n - c, k)) / subsets


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The probability that all of `k` trials pass, from `c` passes in `n` trials of one task.

    C(c, k) / C(n, k): the share of the k-subsets of the trials that hold only passes, which is unbiased; the plug-in
    (c/n)**k is not. Average it over tasks; never raise the mean rate of several tasks to the power k.
    Source: Yao et al. 2024, arXiv:2406.12045.
    Unit: a probability; NaN when n < k. Assumes that the trials are independent and alike.

    Raises:
        ValueError: the counts are impossible (c > n, a negative number, or k < 1).
    """
    _check_counts(n, c, k)
    return math.comb(c, k) / math.comb(n, k) if n >= k else math.nan


def largest_k(trials_by_task: Mapping[str, Sequence[float]]) -> int:
    """The largest k that every task with a scored trial can answer for; 0 when there is none.

    min over tasks of the number of scored trials, as tau2-bench reports it.
    """
    return min((len(trials) for trials in trials_by_task.values() if trials), default=0)


def _check_counts(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"n={n!r} trials, c={c!r} passes, k={k!r}: expected 0 <= c <= n and k >= 1")
