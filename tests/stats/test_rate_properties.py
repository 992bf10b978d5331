"""What holds of every estimate, whatever the trials."""

import random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.stats import Estimate, Scope, estimate, estimate_pass_at, estimate_pass_hat, largest_k


def suites(scores: st.SearchStrategy[float], fewest: int) -> st.SearchStrategy[dict[str, list[float]]]:
    tasks = st.lists(st.lists(scores, min_size=1, max_size=6), min_size=fewest, max_size=15)
    return tasks.map(lambda rows: {f"t{i}": row for i, row in enumerate(rows)})


SUITES = suites(st.sampled_from([0, 1]), fewest=2)
PARTIAL = suites(st.floats(0, 1), fewest=1)
QUICK = settings(max_examples=30, deadline=None)  # the first quantile loads scipy
SCOPES: tuple[Scope, ...] = get_args(Scope)


def ends(e: Estimate) -> tuple[float, float]:
    assert e.ci_low is not None
    assert e.ci_high is not None
    return e.ci_low, e.ci_high


def suite(*passes_of_trials: tuple[int, int]) -> dict[str, list[int]]:
    return {f"t{i}": [1] * c + [0] * (n - c) for i, (c, n) in enumerate(passes_of_trials)}


@QUICK
@given(PARTIAL, st.sampled_from(SCOPES))
def test_the_interval_stays_in_bounds_around_the_mean(trials: dict[str, list[float]], scope: Scope) -> None:
    e = estimate(trials, scope=scope)
    low, high = ends(e)
    assert e.mean is not None
    assert 0 <= low <= e.mean + 1e-15
    assert e.mean - 1e-15 <= high <= 1
    assert low < high


@QUICK
@given(SUITES, st.sampled_from(SCOPES), st.data())
def test_pass_k_intervals_stay_in_bounds_for_every_k(
    trials: dict[str, list[float]], scope: Scope, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, max(map(len, trials.values()))))
    groups = {task_id: data.draw(st.sampled_from("abc")) for task_id in trials}
    for e in (estimate_pass_at(trials, k, groups, scope), estimate_pass_hat(trials, k, groups, scope)):
        low, high = ends(e)
        assert e.mean is not None
        assert 0 <= low <= e.mean + 1e-15
        assert e.mean - 1e-15 <= high <= 1


@QUICK
@given(SUITES, st.data())
def test_order_and_names_of_tasks_and_trials_do_not_matter(trials: dict[str, list[float]], data: st.DataObject) -> None:
    groups = {task_id: data.draw(st.sampled_from("abcd")) for task_id in trials}
    order = data.draw(st.permutations(list(trials)))
    shuffled = {f"renamed {task_id}": data.draw(st.permutations(trials[task_id])) for task_id in order}
    regrouped = {f"renamed {task_id}": f"group {groups[task_id]}" for task_id in order}
    assert estimate(shuffled, regrouped) == estimate(trials, groups)
    assert estimate(shuffled, scope="these-tasks") == estimate(trials, scope="these-tasks")
    k = largest_k(trials)
    assert estimate_pass_hat(shuffled, k, regrouped) == estimate_pass_hat(trials, k, groups)


@QUICK
@given(SUITES, st.sampled_from(SCOPES))
def test_pass_at_1_and_pass_hat_1_are_the_rate(trials: dict[str, list[float]], scope: Scope) -> None:
    rate = estimate(trials, scope=scope)
    for e in (estimate_pass_at(trials, 1, scope=scope), estimate_pass_hat(trials, 1, scope=scope)):
        assert (e.mean, e.ci_low, e.ci_high, e.df, e.n_eff, e.method) == (
            rate.mean,
            rate.ci_low,
            rate.ci_high,
            rate.df,
            rate.n_eff,
            rate.method,
        )
        assert e.se is None if rate.se is None else e.se == pytest.approx(rate.se, abs=1e-9)


@QUICK
@given(SUITES)
def test_a_larger_k_never_lowers_pass_at_or_raises_pass_hat(trials: dict[str, list[float]]) -> None:
    ks = range(1, largest_k(trials) + 1)
    at = [estimate_pass_at(trials, k).mean or 0 for k in ks]
    hat = [estimate_pass_hat(trials, k).mean or 0 for k in ks]
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)


@QUICK
@given(SUITES)
def test_swapping_pass_and_fail_mirrors_the_interval(trials: dict[str, list[float]]) -> None:
    low, high = ends(estimate(trials))
    mirrored = ends(estimate({task_id: [1 - score for score in scores] for task_id, scores in trials.items()}))
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-9)


@QUICK
@given(SUITES, st.integers(2, 20))
def test_copied_trials_add_nothing_to_what_is_known_about_tasks_like_these(
    trials: dict[str, list[float]], copies: int
) -> None:
    once = estimate(trials)
    copied = estimate({task_id: scores * copies for task_id, scores in trials.items()})
    assert (copied.mean, copied.se, copied.df) == pytest.approx((once.mean, once.se, once.df))
    if once.ci_neff and once.se and once.mean and once.mean * (1 - once.mean) / once.se**2 <= once.n_trials:
        assert ends(copied) == pytest.approx(ends(once))


@QUICK
@given(st.integers(2, 60), st.integers(1, 30), st.sampled_from([0, 1]))
def test_at_0_and_100_percent_the_width_depends_on_tasks_and_not_on_trials(
    n: int, trials_each: int, score: int
) -> None:
    e = estimate({str(i): [score] * trials_each for i in range(n)})
    assert (e.mean, e.se, e.n_eff) == (score, 0, n)
    assert ends(e) == ends(estimate({str(i): [score] for i in range(n)}))
    assert score in ends(e)


@QUICK
@given(st.integers(2, 40), st.integers(1, 5), st.integers(0, 3))
def test_one_more_failed_trial_never_raises_the_lower_bound_much(n: int, trials_each: int, failed: int) -> None:
    flawless, flawed = (trials_each, trials_each), (trials_each - 1, trials_each)
    failed = min(failed, n - 2)  # with as many failures as tasks the scores would not vary
    before = ends(estimate(suite(*[flawed] * failed, *[flawless] * (n - failed))))
    after = ends(estimate(suite(*[flawed] * (failed + 1), *[flawless] * (n - failed - 1))))
    assert after[0] - before[0] < 0.05
    assert after[1] <= before[1]


def test_the_first_failure_of_a_regression_suite_moves_the_plain_interval_up_and_ours_hardly() -> None:
    all_pass, one_failed = estimate(suite(*[(5, 5)] * 20)), estimate(suite(*[(5, 5)] * 19, (4, 5)))
    assert all_pass.ci_neff is not None
    assert one_failed.ci_neff is not None
    assert one_failed.ci_neff.low - all_pass.ci_neff.low > 0.11
    assert ends(one_failed)[0] - ends(all_pass)[0] < 0.025


def test_the_interval_covers_the_truth_at_its_nominal_rate() -> None:
    chance = random.Random(11)
    hits = 0
    for _ in range(600):
        p = [chance.betavariate(4, 1) for _ in range(10)]
        low, high = ends(estimate({str(i): [int(chance.random() < q) for _ in range(3)] for i, q in enumerate(p)}))
        hits += low <= 0.8 <= high
    assert hits / 600 > 0.94
