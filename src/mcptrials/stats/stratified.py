"""The interval of a difference on exactly these tasks, which are strata: each has rates of its own."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mcptrials.stats.interval import Interval
from mcptrials.stats.permutation import Dealing, Pair, dealt_variance, is_binary

Floats = NDArray[np.float64]

APART, SECTIONS, ROUNDS = 1e-9, 32, 7
"""By how much a quantile stays below the sum that is rejected; an end is looked for to 2/32^7."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """Tasks of equal results as one: their number, and what both arms scored of how many trials."""

    times: Floats
    a: Floats
    k_a: Floats
    b: Floats
    k_b: Floats

    @property
    def n(self) -> float:
        return float(self.times.sum())

    @property
    def total(self) -> float:
        return float(self.times @ (self.b / self.k_b - self.a / self.k_a))

    @property
    def at_zero(self) -> float:
        return float(self.variance(np.zeros(1))[0])

    def mirrored(self) -> "_Counted":
        return _Counted(self.times, self.b, self.k_b, self.a, self.k_a)

    def variance(self, x: Floats) -> Floats:
        """Of the summed difference, at the likeliest rates of which arm b's is x higher; for each x."""
        x = x[:, None]
        rate_a = self._likeliest(x)
        rate_b = np.clip(rate_a + x, 0, 1)
        both = self.k_a + self.k_b
        of_each = rate_a * (1 - rate_a) / self.k_a + rate_b * (1 - rate_b) / self.k_b
        found: Floats = of_each @ (self.times * both / (both - 1))
        return found

    def _likeliest(self, x: Floats) -> Floats:
        """Arm a's rates: the root of the derivative's cubic that lies where both rates do (Miettinen and Nurminen)."""
        both, passes = self.k_a + self.k_b, self.a + self.b
        square = ((self.k_b + 2 * self.k_a) * x - both - passes) / (3 * both)
        linear = ((self.k_a * x - both - 2 * self.a) * x + passes) / (3 * both)
        rest = self.a * x * (1 - x) / (2 * both)
        radius = np.sqrt(np.maximum(square**2 - linear, 0))
        cubed = square**3 - 1.5 * square * linear + rest
        radius = np.where(cubed > 0, radius, -radius)
        ratio = np.divide(cubed, radius**3, out=np.ones_like(cubed), where=radius != 0)
        angle = (math.pi + np.arccos(np.clip(ratio, -1, 1))) / 3
        found: Floats = np.clip(2 * radius * np.cos(angle) - square, np.maximum(0, -x), np.minimum(1, 1 - x))
        return found


def stratified_interval(pairs: Sequence[Pair], dealing: Dealing | None, alpha: float = 0.05) -> Interval:
    """The differences x that a score test of "arm b passes x more often on every task" does not reject.

    The ends solve (D - n x)^2 = z^2 V(x), V(x) = sum_i [p_ai (1 - p_ai)/K_ai + p_bi (1 - p_bi)/K_bi] N_i/(N_i - 1) with
    the likeliest rates that differ by x: V(0) is the variance of the permutation test. z is the normal quantile, moved
    as little as makes the interval exclude 0 exactly when the exact test rejects. Of scores between 0 and 1, which
    scatter less than passes do, V is scaled to that of the permutation test at 0.
    Source: Miettinen and Nurminen 1985 (Statistics in Medicine 4), section 4, with equal weights of tasks; moving z to
    the exact test is ours (see the simulation).
    Units: differences of scores. Assumes what `permutation_p` does. Where differences vary between tasks it is wider
    than it need be, since the likeliest rates with one difference for all scatter more than the true ones.
    """
    tasks = _counted(pairs)
    scale = _dispersion(pairs, tasks)
    sides = (tasks, dealing), (tasks.mirrored(), dealing and dealing.mirrored())
    low, high = (_lower_end(side, scale, _critical_z(side, scale, of, alpha)) for side, of in sides)
    # Beyond what is looked for lies dust, also beside 0.
    return Interval(round(low, 9) + 0.0, round(-high, 9) + 0.0)


def _critical_z(tasks: _Counted, scale: float, dealing: Dealing | None, alpha: float) -> float:
    """The normal quantile, or what lies next to it and decides about 0 as the exact test does."""
    z, error = NormalDist().inv_cdf(1 - alpha / 2), math.sqrt(scale * tasks.at_zero)
    if dealing is None or error == 0:
        return z
    accepted, rejected = (each / error for each in dealing.critical(alpha))
    return max(min(z, rejected * (1 - APART)), accepted)


def _lower_end(tasks: _Counted, scale: float, z: float) -> float:
    """The smallest difference from which the one that was found is less than z standard errors away."""
    low, high = -1.0, tasks.total / tasks.n
    for _ in range(ROUNDS):
        inside = np.linspace(low, high, SECTIONS + 1)[1:-1]
        near = tasks.total - tasks.n * inside < z * np.sqrt(scale * tasks.variance(inside))
        first = int(np.argmax(near)) if near.any() else len(inside)
        bounds = (low, *inside.tolist(), high)
        low, high = bounds[first], bounds[first + 1]
    return low


def _counted(pairs: Sequence[Pair]) -> _Counted:
    found = Counter((math.fsum(a), len(a), math.fsum(b), len(b)) for a, b in pairs)
    columns = np.array([(times, *key) for key, times in found.items()], dtype=float).T
    return _Counted(*columns)


def _dispersion(pairs: Sequence[Pair], tasks: _Counted) -> float:
    """How much less scores scatter than passes of the same mean; 1 of scores of 0 and 1, or where nothing varies."""
    of_passes = tasks.at_zero
    if not of_passes or all(is_binary(arm) for pair in pairs for arm in pair):
        return 1.0
    return dealt_variance(pairs) / of_passes or 1.0
