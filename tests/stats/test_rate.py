"""The estimate shown beside every rate."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from statistics import fmean, pvariance
from typing import Any, get_args

import pytest

from mcptrials.stats import (
    Estimate,
    Scope,
    estimate,
    estimate_pass_at,
    estimate_pass_hat,
    largest_k,
    wilson_interval,
)

SCOPES: tuple[Scope, ...] = get_args(Scope)


def ends(e: Estimate) -> tuple[float, float]:
    assert e.ci_low is not None
    assert e.ci_high is not None
    return e.ci_low, e.ci_high


def suite(*passes_of_trials: tuple[int, int]) -> dict[str, list[int]]:
    return {f"t{i}": [1] * c + [0] * (n - c) for i, (c, n) in enumerate(passes_of_trials)}


def test_the_mean_is_over_tasks_and_not_over_trials(oracles: dict[str, Any]) -> None:
    case = oracles["clustered_se"]["unbalanced"]
    e = estimate(case["data"])
    assert e.mean == pytest.approx(case["mean_of_task_means"], abs=1e-12)
    assert e.mean != pytest.approx(case["pooled_mean"], abs=1e-3)
    assert e.se == pytest.approx(case["se_of_task_means"], abs=1e-12)
    assert (e.n_tasks, e.n_trials, e.n_groups, e.df) == (6, 23, 6, 5)


def test_six_tasks_of_five_trials_equal_the_reference_values(oracles: dict[str, Any]) -> None:
    case, row = oracles["clustered_se"]["balanced_6x5"], oracles["wilson_effective_n"]["rows"][0]
    e = estimate(case["data"])
    assert (e.mean, e.se) == pytest.approx((case["mean_of_task_means"], case["se_cr2"]), abs=1e-12)
    assert ends(e) == pytest.approx(row["wilson_shrunk"], abs=1e-9)
    assert e.ci_neff == pytest.approx(row["wilson_neff"], abs=1e-9)
    assert e.n_eff == pytest.approx(row["n_eff_shrunk"], rel=1e-9)
    assert e.method == "wilson_shrunk"


def test_groups_widen_what_rests_on_fewer_independent_tasks(oracles: dict[str, Any]) -> None:
    case = oracles["clustered_se"]["task_means_grouped_12_in_5"]
    trials = suite(*((round(5 * mean), 5) for mean in case["task_means"]))
    groups = {task_id: f"g{label}" for task_id, label in zip(trials, case["group"], strict=True)}
    alone, together = estimate(trials), estimate(trials, groups)
    assert (together.mean, together.se, together.df) == pytest.approx(
        (case["mean"], case["se_cr2"], case["bm_df"]), abs=1e-12
    )
    assert (together.n_tasks, together.n_groups) == (12, 5)
    assert ends(together)[0] < ends(alone)[0] < ends(alone)[1] < ends(together)[1]


def test_a_task_without_a_group_stands_on_its_own_even_beside_a_group_of_its_name() -> None:
    trials = suite((5, 5), (3, 5), (1, 5), (4, 5))
    assert estimate(trials, {"t1": "t0", "t2": "t0"}).n_groups == 3


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_k_estimates_equal_the_reference_values(k: int, oracles: dict[str, Any]) -> None:
    inputs, expected = oracles["pass_k_intervals"]["inputs"], oracles["pass_k_intervals"]["by_k"][str(k)]
    trials = suite(*((c, inputs["n"]) for c in inputs["c"]))
    for e, row in (
        (estimate_pass_at(trials, k), expected["pass_at_k"]),
        (estimate_pass_hat(trials, k), expected["pass_hat_k"]),
    ):
        assert (e.mean, e.se) == pytest.approx((row["estimate"], row["se"]), abs=1e-12)
        assert ends(e) == pytest.approx(row["wilson_shrunk"], abs=1e-9)
        assert e.ci_neff == pytest.approx(row["wilson_neff"], abs=1e-9)
        assert e.n_eff == pytest.approx(row["n_eff_shrunk"], rel=1e-9)
        assert (e.n_tasks, e.n_trials) == (20, 100)


def test_a_task_short_of_k_trials_is_left_out_and_not_failed(oracles: dict[str, Any]) -> None:
    case = oracles["missing_trials"]
    trials = suite(*case["tasks_c_of_n"])
    e = estimate_pass_hat(trials, case["k"])
    assert e.mean == pytest.approx(case["pass_hat_3_on_those"], abs=1e-12)
    assert (e.n_tasks, e.n_trials) == (case["tasks_with_n_ge_k"], 14)
    assert largest_k(trials) == case["tau2_rule_max_k"]


def test_pass_hat_is_averaged_over_tasks_and_never_the_power_of_the_pooled_rate() -> None:
    e = estimate_pass_hat(suite((2, 4), (4, 4)), 2)
    assert e.mean == pytest.approx((1 / 6 + 1) / 2)
    assert e.mean != pytest.approx(0.75**2)


def test_these_tasks_get_wilson_on_all_their_trials(oracles: dict[str, Any]) -> None:
    e = estimate(oracles["clustered_se"]["balanced_6x5"]["data"], scope="these-tasks")
    assert ends(e) == pytest.approx(oracles["fixed_set"]["wilson_all_trials_balanced_6x5"], abs=1e-12)
    assert e.se == pytest.approx(oracles["variance_components"]["fixed_task_set_se_balanced_6x5"], abs=1e-12)
    assert e.n_eff == pytest.approx(30)
    assert (e.df, e.method, e.ci_neff) == (None, "wilson_trials", None)


def test_these_tasks_with_unequal_trials_count_fewer_than_all() -> None:
    e = estimate(suite((5, 5), (1, 1)), scope="these-tasks")
    assert e.n_eff == pytest.approx(4 / (1 / 5 + 1))
    assert e.se is None


@pytest.mark.parametrize("estimator", [estimate_pass_at, estimate_pass_hat])
def test_pass_k_on_these_tasks_counts_disjoint_sets_of_k(estimator: Any) -> None:
    e = estimator(suite((5, 5), (4, 5), (3, 5)), 2, scope="these-tasks")
    assert e.n_eff == pytest.approx(6)
    assert estimator(suite((5, 5), (4, 5)), 3, scope="these-tasks").se is None


@pytest.mark.parametrize("k", [1, 2])
def test_the_error_on_these_tasks_is_that_of_many_repetitions(k: int) -> None:
    chance, p = random.Random(7), (0.3, 0.8, 0.6)
    suites = [{str(i): [int(chance.random() < q) for _ in range(5)] for i, q in enumerate(p)} for _ in range(2000)]
    for estimator, truth in (
        (estimate_pass_at, fmean(1 - (1 - q) ** k for q in p)),
        (estimate_pass_hat, fmean(q**k for q in p)),
    ):
        runs = [estimator(trials, k, scope="these-tasks") for trials in suites]
        means = [run.mean for run in runs if run.mean is not None]
        assert fmean(means) == pytest.approx(truth, abs=0.01)
        assert fmean(run.se**2 for run in runs if run.se is not None) == pytest.approx(pvariance(means), rel=0.08)


def test_one_task_speaks_for_itself_only() -> None:
    e = estimate({"only": [1, 1, 1, 0]})
    assert ends(e) == pytest.approx(wilson_interval(3, 4), abs=1e-12)
    assert e.method == "wilson_trials, this task only"
    assert (e.mean, e.df, e.n_tasks, e.n_trials) == (0.75, None, 1, 4)
    assert e.se == pytest.approx(0.25)


def test_one_group_of_tasks_speaks_for_itself_only() -> None:
    e = estimate(suite((5, 5), (2, 5)), {"t0": "g", "t1": "g"})
    assert ends(e) == pytest.approx(wilson_interval(7, 10), abs=1e-12)
    assert e.method == "wilson_trials, this group of tasks only"


def test_a_single_trial_has_an_interval_but_no_error() -> None:
    e = estimate({"only": [1]})
    assert e.se is None
    assert ends(e) == pytest.approx(wilson_interval(1, 1))


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("trials", [{}, {"a": [], "b": []}])
def test_nothing_scored_gives_no_number_at_all(trials: Mapping[str, Sequence[float]], scope: Scope) -> None:
    nothing = Estimate()
    assert estimate(trials, scope=scope) == nothing
    assert estimate_pass_at({"a": [1, 1]}, 3, scope=scope) == nothing
    assert astuple(nothing) == (None, None, None, None, None, 0, 0, None, None, 0, None)


def test_a_task_without_scored_trials_is_left_out() -> None:
    trials = suite((5, 5), (2, 5))
    assert estimate({**trials, "nothing scored": []}) == estimate(trials)


@pytest.mark.parametrize("score", [-0.1, 1.5, float("nan"), float("inf")])
def test_a_score_outside_0_to_1_is_refused_with_the_task_named(score: float) -> None:
    with pytest.raises(ValueError, match="task 'broken'"):
        estimate({"fine": [1], "broken": [0, score]})


def test_partial_credit_has_a_mean_but_no_pass_k() -> None:
    assert estimate({"a": [0.5, 1], "b": [0.25, 0]}).mean == pytest.approx(0.4375)
    with pytest.raises(ValueError, match="expected 0 or 1"):
        estimate_pass_at({"a": [0.5, 1]}, 1)


@pytest.mark.parametrize("estimator", [estimate_pass_at, estimate_pass_hat])
def test_k_below_1_is_refused(estimator: Any) -> None:
    with pytest.raises(ValueError, match="k=0"):
        estimator({}, 0)


def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of"):
        estimate({"a": [1]}, scope="all")  # type: ignore[arg-type]


def test_an_estimate_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Estimate().mean = 0.5  # type: ignore[misc]
