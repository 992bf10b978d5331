"""The exact sign-flip test of paired differences, with the interval that is its inversion."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mcptrials.stats.interval import Interval

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

GRID = 2**16
"""Steps of the grid that differences without a common denominator are rounded to."""
EXACT_COST, JOINT_COST = 4e8, 1e7
"""Additions that the exact p and the exact interval may take, a fraction of a second; beyond, many units differ."""
MOST_ON_GRID = 2000
"""With more values the fine grid would be coarse for each."""
ENUMERATED = 16
"""Up to so many units all subsets are listed."""
LARGEST_DENOMINATOR, LARGEST_COMMON = 20_000, 10**6
ROUNDING, SMALLEST_P = 1e-12, 1e-300
BISECTIONS = 45
NEAR_THE_MEAN = -1e-6
"""Where the saddlepoint formula divides by nearly nothing."""


def sign_flip_p(differences: Sequence[float]) -> float:
    """The two-sided p of the test that flips the sign of every difference, over all 2^n flips.

    p = P(|sum_i s_i d_i| >= |sum_i d_i|), s_i = +-1 with equal probability; zeros do not count. With one trial per task
    it is the exact McNemar test. The distribution is a convolution on the grid of the common denominator; where there
    is none, differences are rounded to a fine grid, symmetrically, which leaves the test exact for what was rounded.
    Of many thousands of differences it is the saddlepoint approximation of `sign_flip_interval`.
    Source: Fisher 1935, The Design of Experiments, section 21; Pitman 1937 (Suppl. JRSS 4).
    Unit: a probability. Assumes independent differences, each as likely to have either sign under "no difference".

    Raises:
        ValueError: a difference is not finite.
    """
    _check_finite(differences)
    signed = _on_grid(differences)
    if signed is None:
        values = np.asarray(differences, dtype=float)
        return min(1.0, max(2 * _chance_below_zero(values if values.sum() > 0 else -values), SMALLEST_P))
    return p_of_steps(signed)


def p_of_steps(signed: Whole) -> float:
    """The same of differences that are whole numbers of some step."""
    steps, total = np.abs(signed), abs(int(signed.sum()))
    if total == 0:
        return 1.0
    # sum s_i w_i = sum |w_i| - 2 * (what is flipped), so that only the sums of subsets are needed.
    limit = (int(steps.sum()) - total) // 2
    return float(min(1.0, max(2 * _subset_sums(steps, limit).sum(), SMALLEST_P)))


def sign_flip_interval(sums: Sequence[float], sizes: Sequence[int], alpha: float = 0.05) -> Interval:
    """All differences that the sign-flip test at level `alpha` does not reject.

    `sums` holds the summed differences of the independent units (tasks, or groups) and `sizes` their numbers of tasks.
    A difference x is rejected from below when P(sum_g B_g (D_g - n_g x) <= 0) <= alpha/2 with B_g fair coins: the ends
    are quantiles of the means over all subsets of units (Hartigan's typical values), found exactly by a convolution
    over size and sum. With too many units for that (a hundred that differ) the probability is Robinson's saddlepoint
    approximation. With less than six units nothing can be rejected: the ends are -1 and 1.
    Source: Hartigan 1969 (JASA 64); Robinson 1982 (JRSS B 44).
    Units: differences of scores, in [-1, 1]. Assumes independent units with symmetric differences.

    Raises:
        ValueError: no units, a unit without a task, or a sum that is not finite.
    """
    if not len(sums) or len(sums) != len(sizes) or min(sizes) < 1:
        raise ValueError(f"{len(sums)} sums, {len(sizes)} sizes: expected as many, and at least one, of a task or more")
    _check_finite(sums)
    totals, counts = np.asarray(sums, dtype=float), np.asarray(sizes, dtype=np.int64)
    low, high = _lower(totals, counts, alpha), -_lower(-totals, counts, alpha)
    return Interval(max(-1.0, low), min(1.0, high))


def _check_finite(values: Sequence[float]) -> None:
    for value in values:
        if not math.isfinite(value):
            raise ValueError(f"a difference is {value!r}: expected a finite number")


def _on_grid(values: Sequence[float]) -> Whole | None:
    """The values as whole steps of their common denominator, or of a fine grid; None when they are too many."""
    denominator, spread = _common_denominator(values), math.fsum(map(abs, values))
    exact = denominator is not None and denominator * spread * len(values) <= 2 * EXACT_COST
    if not exact and len(values) > MOST_ON_GRID:
        return None
    steps = denominator if exact and denominator else GRID / max(spread, math.ulp(0) * GRID)
    return np.rint(np.asarray(values, dtype=float) * steps).astype(np.int64)


def _common_denominator(values: Iterable[float]) -> int | None:
    """The smallest number that makes all values whole; None when they are not fractions with a small one."""
    common = 1
    for value in set(values):
        fraction = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
        common = math.lcm(common, fraction.denominator)
        if abs(fraction - Fraction(value)) > ROUNDING or common > LARGEST_COMMON:
            return None
    return common


def _subset_sums(steps: Whole, limit: int) -> Floats:
    """P(the sum of a random subset is j), for j = 0..limit."""
    chances = np.zeros(limit + 1)
    chances[0] = 1.0
    for step in steps[steps > 0].tolist():
        chances /= 2
        if step <= limit:
            chances[step:] += chances[: limit + 1 - step].copy()
    return chances


def _lower(sums: Floats, sizes: Whole, alpha: float) -> float:
    if math.ldexp(1.0, -len(sums)) > alpha / 2:
        return -math.inf
    if len(sums) <= ENUMERATED:
        return _quantile(*_subsets(sums, sizes), alpha / 2)
    changed = sums != 0
    cost = int(changed.sum()) * int(sizes[changed].sum()) * float(np.abs(sums).sum())
    denominator = _common_denominator(sums.tolist())
    if denominator is not None and cost * denominator <= JOINT_COST:
        return _quantile(*_joint(sums, sizes, denominator), alpha / 2)
    return _saddlepoint_lower(sums, sizes, alpha / 2)


def _subsets(sums: Floats, sizes: Whole) -> tuple[Floats, Floats, Floats]:
    """Sum, size and chance of every subset of units."""
    all_sums, all_sizes = np.zeros(1), np.zeros(1)
    for total, size in zip(sums, sizes, strict=True):
        all_sums = np.concatenate([all_sums, all_sums + total])
        all_sizes = np.concatenate([all_sizes, all_sizes + size])
    return all_sums, all_sizes, np.full(len(all_sums), 1 / len(all_sums))


def _joint(sums: Floats, sizes: Whole, denominator: int) -> tuple[Floats, Floats, Floats]:
    """The same, with all subsets of equal size and sum as one: a convolution in both."""
    steps = np.rint(sums * denominator).astype(np.int64)
    changed = steps != 0
    below, above = int(-steps[steps < 0].sum()), int(steps[steps > 0].sum())
    chances = np.zeros((int(sizes[changed].sum()) + 1, below + above + 1))
    chances[0, below] = 1.0
    for size, step in zip(sizes[changed].tolist(), steps[changed].tolist(), strict=True):
        moved = np.zeros_like(chances)
        rows, columns = chances.shape
        if step > 0:
            moved[size:, step:] = chances[: rows - size, : columns - step]
        else:
            moved[size:, : columns + step] = chances[: rows - size, -step:]
        chances = (chances + moved) / 2
    # Units without a change add to the size alone.
    unchanged = _subset_sums(sizes[~changed], int(sizes[~changed].sum()))
    with_all = np.zeros((len(chances) + len(unchanged) - 1, chances.shape[1]))
    for size, chance in enumerate(unchanged):
        with_all[size : size + len(chances)] += chance * chances
    size_of, step_of = np.nonzero(with_all)
    return (step_of - below) / denominator, size_of.astype(float), with_all[size_of, step_of]


def _quantile(sums: Floats, sizes: Floats, chances: Floats, tail: float) -> float:
    """The smallest subset mean that, with the empty subset, more than `tail` of the subsets do not exceed."""
    some = sizes > 0
    means, chances_of = sums[some] / sizes[some], chances[some]
    order = np.argsort(means, kind="stable")
    reached = float(chances[~some].sum()) + np.cumsum(chances_of[order])
    return float(means[order][np.searchsorted(reached, tail, side="right")])


def _saddlepoint_lower(sums: Floats, sizes: Whole, tail: float) -> float:
    low, high = float((sums / sizes).min()), float(sums.sum() / sizes.sum())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if _chance_below_zero(sums - sizes * middle) > tail else (middle, high)
    return high


def _chance_below_zero(values: Floats) -> float:
    """P(sum_g B_g x_g <= 0) by Lugannani and Rice, for values of both signs whose sum is positive."""
    if values.min() >= 0:
        return 0.0
    distinct, counts = np.unique(values / np.abs(values).max(), return_counts=True)
    scaled, weighted = distinct, distinct * counts
    low, high = -1.0, 0.0
    while float(weighted @ _logistic(low * scaled)) > 0:
        low *= 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if float(weighted @ _logistic(middle * scaled)) <= 0 else (low, middle)
    odds = _logistic(low * scaled)
    cumulant = float(counts @ np.logaddexp(0, low * scaled)) - len(values) * math.log(2)
    w = -math.sqrt(max(-2 * cumulant, 0.0))
    u = low * math.sqrt(float((weighted * scaled) @ (odds * (1 - odds))))
    if w > NEAR_THE_MEAN or u == 0:
        return 0.5
    normal = NormalDist()
    return normal.cdf(w) + normal.pdf(w) * (1 / w - 1 / u)


def _logistic(values: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(values / 2))
