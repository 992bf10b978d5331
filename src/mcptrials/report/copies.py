"""Copies: whether more trials repeat each other word for word than independent ones would."""

from math import exp, lgamma, log

CHANCE = 0.1
"""How often an independent trial may repeat an earlier one of its task; short replies do."""
LEVEL = 0.05


def copied_beyond_chance(copies: int, repeatable: int) -> bool:
    """The exact binomial test of `copies` among the trials that had an earlier one to repeat, one-sided."""
    return copies > 0 and _tail(copies, repeatable, CHANCE) < LEVEL


def _tail(k: int, n: int, p: float) -> float:
    """P(X >= k) for X ~ Binomial(n, p)."""
    terms = (
        lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) + (n - i) * log(1 - p) for i in range(k, n + 1)
    )
    return sum(exp(term) for term in terms)
