"""Trials that repeat each other."""

import random

from mcptrials.stats import Copies, copies_exceed_chance, count_copies


def replies(rng: random.Random, words: str, tasks: int = 12, trials: int = 5) -> dict[str, list[str | None]]:
    return {f"t{i}": [rng.choice(words) for _ in range(trials)] for i in range(tasks)}


def test_distinct_trials_are_counted_within_their_task_and_unknown_ones_are_distinct() -> None:
    found = count_copies({"t": ["x", "x", "y"], "u": ["x", None, None], "v": []})
    assert found == Copies(n_trials=6, n_distinct=5, n_repeats=4)
    assert found.share == 0.25
    assert count_copies({"t": ["x"]}).share is None


def test_arms_that_repeat_themselves_and_not_each_other_are_copied() -> None:
    rng = random.Random(0)
    own = replies(rng, "abcdefghijklmnopqrstuvwxyz")
    assert copies_exceed_chance({t: ["a"] * 5 for t in own}, {t: ["b"] * 5 for t in own})
    assert copies_exceed_chance({t: [f"a{t}"] * 5 for t in own}, own)


def test_short_replies_that_both_arms_give_alike_are_no_copies() -> None:
    same = {f"t{i}": ["yes"] * 5 for i in range(12)}
    assert not copies_exceed_chance(same, same)
    assert not copies_exceed_chance({}, {})
    assert not copies_exceed_chance({"t": [None] * 9}, {"t": [None] * 9})
    called = [
        copies_exceed_chance(*(replies(random.Random(f"{arm}{run}"), "xxxy", 8, 4) for arm in "ab"))
        for run in range(60)
    ]
    assert sum(called) <= 8
