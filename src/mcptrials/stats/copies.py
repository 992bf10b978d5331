"""Trials that repeat each other word for word, as at temperature 0 or behind a cache."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Replies = Mapping[str, Sequence[str | None]]
"""Task id to a fingerprint of the replies of each trial; None is not known, and repeats nothing."""

Whole = NDArray[np.int64]

DEALS = 999
CHANCE = 0.05


@dataclass(frozen=True, slots=True)
class Copies:
    """How many of an arm's trials say something new."""

    n_trials: int
    n_distinct: int
    """Trials that are unlike every earlier trial of their task."""
    n_repeats: int
    """Trials beyond the first of their task: those that could be copies."""

    @property
    def share(self) -> float | None:
        """The share of `n_repeats` that are copies; None when no task was tried twice."""
        return (self.n_trials - self.n_distinct) / self.n_repeats if self.n_repeats else None


def count_copies(replies_by_task: Replies) -> Copies:
    """Count trials and distinct trials, task by task. Unit: trials."""
    n_trials = sum(len(replies) for replies in replies_by_task.values())
    n_distinct = sum(len(_alike(replies)) for replies in replies_by_task.values())
    return Copies(n_trials, n_distinct, n_trials - sum(len(replies) > 0 for replies in replies_by_task.values()))


def copies_exceed_chance(a: Replies, b: Replies) -> bool:
    """Whether trials of one arm repeat each other more than trials of both arms do.

    `these-tasks` deals the trials of a task anew to the arms. That is fair when two trials of one arm are no likelier
    to be equal than two of different arms; so the trials are dealt anew 999 times, and copies exceed chance when the
    number of equal pairs within arms is among the largest 5 %. Copies that both arms share do no harm, and pass.
    An arm that always says the same of its own accord cannot be told from one that is copied.
    Source: a Monte-Carlo permutation test (Phipson and Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9); its use here is
    ours. Assumes nothing about how likely equal replies are.
    """
    generator = np.random.default_rng(0)
    observed, dealt = 0, np.zeros(DEALS, dtype=np.int64)
    for sizes, of_b in _mixed_tasks(a, b):
        observed += int(_equal_pairs(of_b, sizes))
        dealt += _equal_pairs(generator.multivariate_hypergeometric(sizes, int(of_b.sum()), size=DEALS), sizes)
    return bool((1 + int((dealt >= observed).sum())) / (1 + DEALS) <= CHANCE)


def _alike(replies: Sequence[str | None]) -> Counter[object]:
    """How often each reply occurs; unknown ones are each their own."""
    return Counter((place,) if reply is None else reply for place, reply in enumerate(replies))


def _mixed_tasks(a: Replies, b: Replies) -> Iterator[tuple[Whole, Whole]]:
    """Of each common task with equal replies: how often each occurs, and how often in arm b."""
    for task_id in sorted(a.keys() & b.keys()):
        both = _alike([*a[task_id], *b[task_id]])
        if max(both.values(), default=1) > 1:
            of_a = _alike(a[task_id])
            sizes = np.array(list(both.values()))
            yield sizes, sizes - np.array([of_a[reply] for reply in both])


def _equal_pairs(of_b: Whole, sizes: Whole) -> Whole:
    of_a = sizes - of_b
    pairs: Whole = (of_a * (of_a - 1) + of_b * (of_b - 1)).sum(axis=-1) // 2
    return pairs
