"""The exact test of two arms on exactly these tasks: trials change arms within their task."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]
Pair = tuple[Sequence[float], Sequence[float]]
"""The scores of one task: those of arm a, those of arm b."""

EXACT_GRID, FINE_GRID = 2**13, 2**18
"""The most steps times the root of the tasks that stay exact, and the steps times the tasks of a grid that is not."""
MOST_TASKS = 10_000
"""Beyond, the distribution is as good as normal."""
SCORE_GRID = 200
"""Steps between 0 and 1 that scores other than 0 and 1 are rounded to; the test stays exact for what was rounded."""
NEGLIGIBLE, DUST = 1e-30, 1e-13
"""Chances below are left out, and no p is given below: of 500 000 trials few numbers of passes are likely."""


@dataclass(frozen=True, slots=True)
class Dealing:
    """The summed difference when the trials of each task are dealt anew to the arms: its values and their chances."""

    values: Floats
    """In grid steps, ascending; only those that can occur."""
    chances: Floats
    observed: int
    """In the same steps."""
    step: float
    """Of the grid, as a summed difference."""

    def p(self) -> float:
        """Two-sided: 2 min(P(D* >= D), P(D* <= D))."""
        above = float(self.chances[self.values >= self.observed].sum())
        below = float(self.chances[self.values <= self.observed].sum())
        # A p of 5 % that dust lies on is one of 5 %.
        return min(1.0, max(float(f"{2 * min(above, below):.13g}"), NEGLIGIBLE))

    def critical(self, alpha: float) -> tuple[float, float]:
        """The largest sum above which the test does not reject, and the next one, which it does (or infinity)."""
        tails = np.cumsum(self.chances[::-1])[::-1]
        rejected = int(np.searchsorted(-tails, -alpha / 2 * (1 + DUST)))
        last = float(self.values[rejected - 1]) * self.step if rejected else -math.inf
        return last, float(self.values[rejected]) * self.step if rejected < len(tails) else math.inf

    def mirrored(self) -> "Dealing":
        """The same with the arms exchanged."""
        return Dealing(-self.values[::-1], self.chances[::-1], -self.observed, self.step)


def deal(pairs: Sequence[Pair]) -> Dealing | None:
    """The exact distribution; None of so many tasks that it is as good as normal."""
    if len(pairs) > MOST_TASKS:
        return None
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
    some = np.nonzero(total)[0]
    return Dealing((some + offset).astype(np.float64), total[some], observed, 1 / steps)


def permutation_p(pairs: Sequence[Pair], dealing: Dealing | None) -> float:
    """The two-sided p of the test that deals the trials of each task anew to the two arms.

    p = 2 min(P(D* >= D), P(D* <= D)), so that either side errs in at most half of the level also where numbers of
    trials differ; D = sum_i (mean_bi - mean_ai) is a sum of independent hypergeometric variables, convolved; for
    scores of 0 and 1 and equal numbers of trials it is the exact conditional Cochran-Mantel-Haenszel test.
    Source: Fisher 1935, section 21; Agresti 2013, Categorical Data Analysis, section 6.4.
    Unit: a probability. Assumes that the trials of a task are independent and alike within an arm: copied trials are
    not (a true "no difference" is then rejected in 28 to 47 % instead of 5 %).
    """
    if dealing is not None:
        return dealing.p()
    total_difference, variance = math.fsum(fmean(b) - fmean(a) for a, b in pairs), dealt_variance(pairs)
    return max(math.erfc(abs(total_difference) / math.sqrt(2 * variance)), NEGLIGIBLE) if variance else 1.0


def smallest_p(pairs: Sequence[Pair]) -> float:
    """The smallest p that the results of these trials, dealt in any way, could give: that of one extreme."""
    logs = [0.0, 0.0]
    for a, b in pairs:
        _, chances = _dealt(a, b)
        logs = [logs[0] + math.log(float(chances[0])), logs[1] + math.log(float(chances[-1]))]
    return min(1.0, 2 * math.exp(min(logs)))


def dealt_variance(pairs: Sequence[Pair]) -> float:
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
    if not all(is_binary(arm) for pair in pairs for arm in pair):
        common *= SCORE_GRID
    exact = common * math.sqrt(len(pairs)) <= EXACT_GRID
    return float(common) if exact else FINE_GRID / len(pairs)


def is_binary(scores: Sequence[float]) -> bool:
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
    if is_binary(a) and is_binary(b):
        return math.fsum(a), math.fsum(b)
    sum_a, sum_b = (float(np.rint(np.asarray(arm, dtype=float) * SCORE_GRID).sum()) / SCORE_GRID for arm in (a, b))
    return sum_a, sum_b


def _dealt(a: Sequence[float], b: Sequence[float]) -> tuple[Floats, Floats]:
    """The sums that arm b can have when the trials are dealt anew, with their chances."""
    if is_binary(a) and is_binary(b):
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
