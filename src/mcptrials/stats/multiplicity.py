"""Adjusting p values for their number."""

from collections.abc import Sequence


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: compare each with alpha for the whole family.

    With p_(1) <= ... <= p_(m): max_{j <= i} min(1, (m - j + 1) p_(j)). Keeps the chance of any false finding of the
    family at alpha. Source: Holm 1979 (Scand. J. Statistics 6). Unit: probabilities. Assumes valid p values, dependent
    in any way.

    Raises:
        ValueError: a p value that is not in [0, 1].
    """
    order, adjusted, highest = _ascending(ps), [0.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p values, in the order given: for exploring, not for verdicts.

    With p_(1) <= ... <= p_(m): min_{j >= i} min(1, m p_(j) / j). Keeps the expected share of false findings at alpha.
    Source: Benjamini and Hochberg 1995 (JRSS B 57). Unit: probabilities. Assumes independent or positively dependent
    p values.

    Raises:
        ValueError: a p value that is not in [0, 1].
    """
    order, adjusted, lowest = _ascending(ps), [0.0] * len(ps), 1.0
    for rank in range(len(ps), 0, -1):
        index = order[rank - 1]
        lowest = min(lowest, len(ps) * ps[index] / rank)
        adjusted[index] = lowest
    return adjusted


def _ascending(ps: Sequence[float]) -> list[int]:
    for index, p in enumerate(ps):
        if not 0 <= p <= 1:
            raise ValueError(f"p value {index} is {p!r}: expected a number in [0, 1]")
    return sorted(range(len(ps)), key=lambda index: ps[index])
