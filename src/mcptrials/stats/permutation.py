"""The exact test of two arms on exactly these tasks: trials change arms within their task."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mcptrials.stats.interval import Interval

Floats = NDArray[np.float64]
Pair = tuple[Sequence[float], Sequence[float]]
"""The scores of one task: those of arm a, those of arm b."""

EXACT_GRID, FINE_GRID = 2**13, 2**18
"""The most steps times the root of the tasks that stay exact, and the steps times the tasks of a grid that is not."""
MOST_TASKS = 10_000
"""Beyond, the distribution is as good as normal."""
SCORE_GRID = 200
"""Steps between 0 and 1 that scores other than 0 and 1 are rounded to; the test stays exact for what was rounded."""
LARGEST_CALIBRATION, SMALLEST_P = 2.0, 1e-15
NEGLIGIBLE = 1e-30
"""Chances below are left out, and no p is given below: of 500 000 trials few numbers of passes are likely."""


def permutation_p(pairs: Sequence[Pair]) -> float:
    """The two-sided p of the test that deals the trials of each task anew to the two arms.

    p = 2 min(P(D* >= D), P(D* <= D)), so that either side errs in at most half of the level also where numbers of
    trials differ; D = sum_i (mean_bi - mean_ai) is a sum of independent hypergeometric variables, convolved; for
    scores of 0 and 1 and equal numbers of trials it is the exact conditional Cochran-Mantel-Haenszel test.
    Source: Fisher 1935, section 21; Agresti 2013, Categorical Data Analysis, section 6.4.
    Unit: a probability. Assumes that the trials of a task are independent and alike within an arm: copied trials are
    not (a true "no difference" is then rejected in 28 to 47 % instead of 5 %).
    """
    if len(pairs) > MOST_TASKS:
        total_difference, variance = math.fsum(fmean(b) - fmean(a) for a, b in pairs), _variance(pairs)
        return math.erfc(abs(total_difference) / math.sqrt(2 * variance)) if variance else 1.0
    steps = _steps(pairs)
    total, offset, observed = np.ones(1), 0, 0
    for a, b in pairs:
        sums, chances = _dealt(a, b)
        scale = steps * (1 / len(a) + 1 / len(b))
        in_a, in_b = _on_score_grid(a, b)
        places = _places(sums * scale - steps * (in_a + in_b) / len(a))
        observed += int(_places(np.array(in_b * scale - steps * (in_a + in_b) / len(a))))
        total, offset = _convolved(total, places - places.min(), chances), offset + int(places.min())
        likely = np.nonzero(total > NEGLIGIBLE)[0]
        total, offset = total[likely[0] : likely[-1] + 1], offset + int(likely[0])
    places = np.arange(len(total)) + offset
    smaller = min(float(total[places >= observed].sum()), float(total[places <= observed].sum()))
    return min(1.0, max(2 * smaller, NEGLIGIBLE))


def permutation_interval(pairs: Sequence[Pair], p: float, alpha: float = 0.05) -> Interval:
    """The differences that the same test does not reject when they are first taken off arm b.

    With x taken off, D* has the variance V(x) = sum_i [SS_i + (d_i - x)^2 K_a K_b/N] N/(K_a K_b (N - 1)), where SS_i is
    the squares within arms and N = K_a + K_b; the ends solve (D - n x)^2 = z^2 V(x). z is the normal quantile times the
    ratio of the normal score at x = 0 to that of the exact `p`, so that the interval excludes 0 when the test does.
    Where nothing varies, Newcombe's hybrid of the two Wilson intervals has to serve: see `compare_paired`.
    Source: Agresti 2013, section 6.4 for V(0); inverting it, and the calibration, are ours (see the simulation).
    Units: differences of scores. Assumes what `permutation_p` does, and one difference for all trials.
    """
    n = len(pairs)
    differences = np.array([fmean(b) - fmean(a) for a, b in pairs])
    rest = np.array([len(a) + len(b) - 1 for a, b in pairs], dtype=float)
    within = math.fsum(_squares(a, b) * (1 / len(a) + 1 / len(b)) / (len(a) + len(b) - 1) for a, b in pairs)
    total = float(differences.sum())
    z = _calibration(total, within + float((differences**2 / rest).sum()), p) * NormalDist().inv_cdf(1 - alpha / 2)
    # (n^2 - z^2 sum 1/r) x^2 - 2 (n D - z^2 sum d/r) x + (D^2 - z^2 (W + sum d^2/r)) = 0
    square = n * n - z * z * float((1 / rest).sum())
    linear = n * total - z * z * float((differences / rest).sum())
    constant = total**2 - z * z * (within + float((differences**2 / rest).sum()))
    root = linear * linear - square * constant
    if square <= 0 or root < 0:
        return Interval(-1.0, 1.0)
    half = math.sqrt(root)
    return Interval(max(-1.0, (linear - half) / square), min(1.0, (linear + half) / square))


def smallest_p(pairs: Sequence[Pair]) -> float:
    """The smallest p that the results of these trials, dealt in any way, could give: that of one extreme."""
    logs = [0.0, 0.0]
    for a, b in pairs:
        _, chances = _dealt(a, b)
        logs = [logs[0] + math.log(float(chances[0])), logs[1] + math.log(float(chances[-1]))]
    return min(1.0, 2 * math.exp(min(logs)))


def _calibration(total: float, variance: float, p: float) -> float:
    """The normal score of the difference by that of its exact p."""
    exact = -NormalDist().inv_cdf(max(p, SMALLEST_P) / 2)
    if variance <= 0 or total == 0:
        return 1.0
    score = abs(total) / math.sqrt(variance)
    return min(score / exact, LARGEST_CALIBRATION) if exact > 0 else LARGEST_CALIBRATION


def _variance(pairs: Sequence[Pair]) -> float:
    """Of the summed difference, when trials are dealt anew."""
    found = 0.0
    for a, b in pairs:
        k_a, k_b, difference = len(a), len(b), fmean(b) - fmean(a)
        squares = _squares(a, b) + difference**2 * k_a * k_b / (k_a + k_b)
        found += squares * (1 / k_a + 1 / k_b) / (k_a + k_b - 1)
    return found


def _squares(a: Sequence[float], b: Sequence[float]) -> float:
    mean_a, mean_b = fmean(a), fmean(b)
    return math.fsum([*((score - mean_a) ** 2 for score in a), *((score - mean_b) ** 2 for score in b)])


def _steps(pairs: Sequence[Pair]) -> float:
    """Steps of the grid of the summed difference: exact where one can be, else fine."""
    common = math.lcm(*{len(arm) for pair in pairs for arm in pair})
    if not all(_is_binary(arm) for pair in pairs for arm in pair):
        common *= SCORE_GRID
    exact = common * math.sqrt(len(pairs)) <= EXACT_GRID
    return float(common) if exact else FINE_GRID / len(pairs)


def _is_binary(scores: Sequence[float]) -> bool:
    return all(score in (0, 1) for score in scores)


def _convolved(total: Floats, places: NDArray[np.int64], chances: Floats) -> Floats:
    """The distribution of a sum with one more task, which has few values that may lie far apart."""
    task = np.bincount(places, weights=chances)
    few = np.nonzero(task)[0]
    result = np.zeros(len(total) + len(task) - 1)
    for place, chance in zip(few.tolist(), task[few].tolist(), strict=True):
        result[place : place + len(total)] += chance * total
    return result


def _places(values: Floats) -> NDArray[np.int64]:
    """Values as whole steps, a value and its negative alike although dust lies on them."""
    return np.rint(np.round(values, 6)).astype(np.int64)


def _on_score_grid(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The summed scores of both arms, as `_dealt` rounds them."""
    if _is_binary(a) and _is_binary(b):
        return math.fsum(a), math.fsum(b)
    sum_a, sum_b = (float(np.rint(np.asarray(arm, dtype=float) * SCORE_GRID).sum()) / SCORE_GRID for arm in (a, b))
    return sum_a, sum_b


def _dealt(a: Sequence[float], b: Sequence[float]) -> tuple[Floats, Floats]:
    """The sums that arm b can have when the trials are dealt anew, with their chances."""
    if _is_binary(a) and _is_binary(b):
        return _hypergeometric(len(a), len(b), round(math.fsum((*a, *b))))
    steps = np.rint(np.asarray((*a, *b), dtype=float) * SCORE_GRID).astype(np.int64)
    # chances[k, s]: of the trials seen so far, k went to arm b with the sum s.
    ways = np.zeros((len(b) + 1, int(steps.sum()) + 1))
    ways[0, 0] = 1.0
    for seen, step in enumerate(steps.tolist()):
        moved = np.zeros_like(ways)
        moved[1:, step:] = ways[:-1, : ways.shape[1] - step]
        taken = np.arange(len(b) + 1)[:, None]
        left = len(steps) - seen
        # The next trial goes to arm b with the share of places that arm b has left.
        go = np.clip((len(b) - taken + 1) / left, 0, 1)
        stay = np.clip(1 - (len(b) - taken) / left, 0, 1)
        ways = moved * go + ways * stay
    sums = np.nonzero(ways[len(b)])[0]
    return sums / SCORE_GRID, ways[len(b), sums]


def _hypergeometric(n_a: int, n_b: int, passes: int) -> tuple[Floats, Floats]:
    def log_choose(n: float, k: Floats) -> Floats:
        result: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return result

    sums = np.arange(max(0, passes - n_a), min(n_b, passes) + 1, dtype=float)
    logs = log_choose(n_b, sums) + log_choose(n_a, passes - sums)
    chances = np.exp(logs - logs.max())
    likely = chances > NEGLIGIBLE
    return sums[likely], chances[likely] / chances.sum()
