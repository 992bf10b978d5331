"""The power of the very test that decides, by simulation."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mcptrials.stats.power import PairedDesign
from mcptrials.stats.sign_flip import EXACT_COST, p_of_steps, sign_flip_p

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

AT_ONCE = 2**20
"""Chances that are held at a time."""
TINY, ROUNDING = 1e-300, 1e-12


def simulated_power(
    design: PairedDesign,
    n_tasks: int | Sequence[int],
    difference: float,
    seed: int = 0,
    runs: int = 500,
    alpha: float = 0.05,
) -> float:
    """The share of simulated comparisons in which the sign-flip test finds a true `difference`, in its direction.

    Tasks pass with q - e/2 in arm a and q + e/2 in arm b, where e = difference +- sqrt(omega2) and q = 1/2 +- s with s
    such that the mean variance of a trial is the mean of sigma2 (both as near as rates in [0, 1] come). Trials are
    drawn, and compared as `compare_paired` does: by `sign_flip_p`, flipping whole groups. The simulation's own standard
    error is sqrt(power (1 - power) / runs), at most 1/(2 sqrt(runs)).
    Units: scores, a probability. Assumes trials of 0 or 1, and that the tasks of a group share one e, the worst case.

    Args:
        n_tasks: the number of tasks; or the numbers of tasks of each group, where there are groups.

    Raises:
        ValueError: no task or no run, or a difference beyond 1.
    """
    sizes = np.ones(max(n_tasks, 0), dtype=np.int64) if isinstance(n_tasks, int) else np.array(n_tasks, dtype=np.int64)
    if not sizes.size or sizes.min() < 1 or runs < 1 or not -1 <= difference <= 1:
        raise ValueError(f"{n_tasks=}, {runs=}, {difference=}: expected at least 1, at least 1, and within [-1, 1]")
    generator = np.random.default_rng(seed)
    a, b = _rates(design, (runs, sizes), difference, generator)
    k_a, k_b = design.trials
    # In whole steps of the smallest change that trials can make, which spares the test looking for it each time.
    step = math.lcm(k_a, k_b)
    changes = generator.binomial(k_b, b) * (step // k_b) - generator.binomial(k_a, a) * (step // k_a)
    sums = np.add.reduceat(changes, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1)
    found = sums[sums.sum(axis=1) * difference > 0]
    if float(sizes.size) * int(sizes.sum()) * step > EXACT_COST:
        return sum(sign_flip_p((row / step).tolist()) <= alpha for row in found) / runs
    return int((_sign_flip_ps(found) <= alpha + ROUNDING).sum()) / runs


def _sign_flip_ps(signed: Whole) -> Floats:
    """`p_of_steps` of every row, all at once.

    A sum of +-w has the characteristic function prod cos(w t), a product over the distinct w with their counts as
    exponents; one Fourier transform gives its distribution. Exact but for rounding, some 1e-14. With very many distinct
    w the rows are better taken one by one.
    """
    steps = np.abs(signed)
    most = int(steps.sum(axis=1).max(initial=0))
    if most == 0:
        return np.ones(len(signed))
    length = 2 ** (2 * most).bit_length()
    values = np.unique(steps[steps > 0])
    if len(values) * length > 2 * AT_ONCE:
        return np.array([p_of_steps(row) for row in signed])
    cosines = np.cos(np.outer(values, np.arange(length // 2 + 1) * (2 * math.pi / length)))
    logs, negative = np.log(np.maximum(np.abs(cosines), TINY)), (cosines < 0).astype(float)
    ps: list[Floats] = []
    for rows in np.array_split(signed, math.ceil(len(signed) * length / AT_ONCE)):
        counts = np.stack([(np.abs(rows) == value).sum(axis=1) for value in values], axis=1).astype(float)
        signs = 1 - 2 * (counts @ negative % 2)
        chances = np.fft.irfft(np.exp(counts @ logs) * signs, length)[:, most::-1]
        place = most - np.abs(rows.sum(axis=1))
        ps.append(2 * np.cumsum(chances, axis=1)[np.arange(len(rows)), place])
    found: Floats = np.minimum(1.0, np.concatenate(ps))
    return found


def _rates(
    design: PairedDesign, shape: tuple[int, NDArray[np.int64]], difference: float, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    runs, sizes = shape
    signs = generator.choice([-1.0, 1.0], size=(2, runs, int(sizes.sum())))
    of_group = np.repeat(signs[0, :, : sizes.size], sizes, axis=1)
    true = difference + of_group * min(math.sqrt(design.omega2), 1 - abs(difference))
    noise = sum(design.sigma2) / 2
    spread = math.sqrt(max(0.0, 0.25 - noise - (difference**2 + design.omega2) / 4))
    middle = 0.5 + signs[1] * np.minimum(spread, 0.5 - np.abs(true) / 2)
    # Rounding may leave [0, 1] by a hair, which no trial can be drawn from.
    return np.clip(middle - true / 2, 0, 1), np.clip(middle + true / 2, 0, 1)
