"""A short form of the simulation in docs/statistics.md: tests err, and intervals cover, as they say."""

import random
from typing import Any

import pytest
from bench.recovery import recovered
from bench.simulation import PAGE, coverage, differing_arms, equal_arms

from mcptrials.stats import Scope, compare_paired, pass_hat_k

RUNS = 100
MOST = 0.08
"""2.5 of 100 are expected; more than 8 have a chance of 0.1 % when a test is just right."""


@pytest.mark.parametrize(
    ("kind", "scope"),
    [
        ("plain", "tasks-like-these"),
        ("unequal", "tasks-like-these"),
        ("copied", "tasks-like-these"),
        ("groups", "tasks-like-these"),
        ("unequal", "these-tasks"),
        ("copied", "these-tasks"),
    ],
)
def test_equal_arms_are_seldom_called_better_or_worse(kind: str, scope: Scope) -> None:
    better, worse, pooled = equal_arms(kind, scope, RUNS)
    assert better <= MOST
    assert worse <= MOST
    if kind in ("copied", "groups"):
        assert pooled > 0.15


def test_the_same_server_twice_is_no_detectable_difference_in_95_of_100_comparisons() -> None:  # C67
    """20 tasks x 3 trials that pass with 0.8; "not worse than before" alone would fail four of ten such comparisons."""
    rng, changed, lower = random.Random(67), 0, 0
    for _ in range(400):
        a, b = ({f"t{i}": [int(rng.random() < 0.8) for _ in range(3)] for i in range(20)} for _ in "ab")
        found = compare_paired(a, b)
        changed, lower = changed + (found.verdict != "inconclusive"), lower + (found.difference < 0)
    assert changed <= 20
    assert 150 <= lower <= 200


def test_five_hundred_suites_cover_the_true_rate_at_the_nominal_share() -> None:
    ours, normal, pooled, _ = coverage(20, 5, (2.0, 2.0), 500)
    assert ours >= 0.92
    assert pooled < 0.9
    ours, normal, _, _ = coverage(10, 5, (9.0, 0.5), 500)
    assert ours >= 0.92
    assert normal < 0.9


def test_intervals_of_differences_cover_and_large_differences_are_found() -> None:
    for scope in ("tasks-like-these", "these-tasks"):
        found, _, held, _ = differing_arms(20, 0.3, scope, RUNS)
        assert found > 0.85
        assert held >= 0.88


def test_whole_runs_of_scripts_with_known_rates_hold_them_in_their_intervals() -> None:
    """Of 20 intervals 19 are expected to; less than 16 have a chance of three in a thousand."""
    found = [held for seed in range(4) for held in recovered(seed).values()]
    assert len(found) == 20
    assert sum(found) >= 16


def test_the_page_holds_the_tables_of_the_simulation() -> None:
    text = PAGE.read_text("utf-8")
    assert "2000 seeded runs per row of the first table, 500 of the others" in text
    assert text.count("| plain | tasks-like-these |") == 1
    assert text.count("500 runs of") == 1


def test_the_traps_of_pass_hat_k_are_avoided(oracles: dict[str, Any]) -> None:
    traps = oracles["pass_hat_traps"]
    plugin, aggregation = traps["plugin"], traps["aggregation"]
    assert pass_hat_k(plugin["n"], plugin["c"], plugin["k"]) == pytest.approx(plugin["unbiased_pass_hat_k"], abs=1e-12)
    means = [pass_hat_k(2000, round(2000 * p), aggregation["k"]) for p in aggregation["two_tasks_p"]]
    assert sum(means) / 2 == pytest.approx(aggregation["mean_over_tasks_of_p^k"], abs=1e-3)
