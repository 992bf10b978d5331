"""Wilson's interval, plain and on an effective number of trials."""

import math
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from mcptrials.stats import (
    TaskMean,
    all_pass_bound,
    average_tasks,
    effective_trials,
    shrunk_trials,
    t_quantile,
    wilson_interval,
    wilson_neff,
    wilson_shrunk,
)


def test_wilson_equals_the_reference_values(oracles: dict[str, Any]) -> None:
    for row in oracles["binomial_intervals_95"]["rows"]:
        assert wilson_interval(row["successes"], row["n"]) == pytest.approx(row["wilson"], abs=1e-12), row


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 500), st.data())
def test_wilson_equals_scipy_and_statsmodels(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    ours = wilson_interval(c, n)
    theirs = binomtest(c, n).proportion_ci(method="wilson")
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert ours == pytest.approx(proportion_confint(c, n, method="wilson"), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1), st.floats(0.01, 1e6), st.floats(0.1, 20))
def test_wilson_stays_in_bounds_around_the_share(share: float, n: float, z: float) -> None:
    low, high = wilson_interval(share * n, n, z)
    assert 0 <= low <= share * n / n <= high <= 1
    mirrored = wilson_interval(n - share * n, n, z)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((low, high), abs=1e-9)


def test_wilson_touches_0_and_1_exactly() -> None:
    for n in range(1, 400):
        assert wilson_interval(0, n).low == 0
        assert wilson_interval(n, n).high == 1


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (1, 0), (-1, 5), (6, 5), (1, -1), (math.nan, 5), (1, math.inf)])
def test_impossible_counts_have_no_interval(successes: float, n: float) -> None:
    with pytest.raises(ValueError, match="expected n > 0"):
        wilson_interval(successes, n)


@pytest.mark.parametrize("z", [0, -1, math.nan, math.inf])
def test_an_interval_without_width_is_not_given(z: float) -> None:
    with pytest.raises(ValueError, match="z > 0"):
        wilson_interval(3, 5, z)


def test_both_task_intervals_equal_the_reference_values(oracles: dict[str, Any]) -> None:
    for row in oracles["wilson_effective_n"]["rows"]:
        x = average_tasks(row["task_means"], n_trials=row["K"] * len(row["task_means"]))
        assert (x.mean, x.se, x.minority) == pytest.approx((row["mean"], row["se"], row["minority"]), abs=1e-12)
        assert t_quantile(0.975, x.df) == pytest.approx(row["t_quantile"], abs=1e-9)
        assert effective_trials(x) == pytest.approx(row["n_eff"], rel=1e-9)
        assert shrunk_trials(x) == pytest.approx(row["n_eff_shrunk"], rel=1e-9)
        assert wilson_neff(x) == pytest.approx(row["wilson_neff"], abs=1e-9)
        assert wilson_shrunk(x) == pytest.approx(row["wilson_shrunk"], abs=1e-9)


def test_the_effective_number_of_trials_never_exceeds_the_trials() -> None:
    assert effective_trials(TaskMean(mean=0.5, se=0.001, df=9, n_trials=50, n_groups=10, minority=10)) == 50


@pytest.mark.parametrize("mean", [0.0, 0.6, 1.0])
def test_without_any_spread_the_units_count_and_not_the_trials(mean: float) -> None:
    x = average_tasks([mean] * 10, n_trials=50)
    assert effective_trials(x) == 10
    assert shrunk_trials(x) == pytest.approx(10, rel=1e-12)


def test_all_pass_in_grouped_tasks_counts_the_groups() -> None:
    x = average_tasks([1] * 12, n_trials=60, groups=[0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4])
    assert effective_trials(x) == shrunk_trials(x) == 5


def test_the_all_pass_bound_equals_the_exact_binomial_one(oracles: dict[str, Any]) -> None:
    for row in oracles["binomial_intervals_95"]["rule_of_three"]:
        bound = all_pass_bound(row["n"])
        assert bound == pytest.approx(row["exact_one_sided_95_upper"], abs=1e-12)
        exact = binomtest(0, row["n"], alternative="less").proportion_ci(confidence_level=0.95, method="exact")
        assert bound == pytest.approx(exact.high, abs=1e-9)
        assert bound < row["rule_of_three"]


@pytest.mark.parametrize(("n", "alpha"), [(0, 0.05), (-3, 0.05), (math.nan, 0.05), (10, 0), (10, 1)])
def test_an_all_pass_bound_needs_a_trial_and_a_level(n: int, alpha: float) -> None:
    with pytest.raises(ValueError, match="expected n >= 1"):
        all_pass_bound(n, alpha)


@pytest.mark.parametrize(
    ("scores", "trials", "told"),
    [
        # Three tasks pass both trials, seven one, two none: 13 of 24, pass@2 of 10 of 12 tasks, pass^2 of 3 of 12.
        ([1.0] * 3 + [0.5] * 7 + [0.0] * 2, 2, (0.542, 0.315, 0.752, 20.3)),
        ([1.0] * 10 + [0.0] * 2, 1, (0.833, 0.509, 0.960, 11.5)),
        ([1.0] * 3 + [0.0] * 9, 1, (0.250, 0.077, 0.573, 11.4)),
    ],
)
def test_the_intervals_of_the_first_page_follow_from_the_formulas_of_the_statistics_page(
    scores: list[float], trials: int, told: tuple[float, ...]
) -> None:
    n, mean = len(scores), fmean(scores)
    n_eff = min(mean * (1 - mean) / (stdev(scores) ** 2 / n), n * trials)
    w = 2 / (min(sum(x > 0 for x in scores), sum(x < 1 for x in scores)) + 2)
    shrunk, z = 1 / (w / n + (1 - w) / n_eff), student.ppf(0.975, n - 1)
    middle, half = mean + z**2 / 2 / shrunk, z * math.sqrt(mean * (1 - mean) / shrunk + (z / 2 / shrunk) ** 2)
    low, high = ((middle + side * half) / (1 + z**2 / shrunk) for side in (-1, 1))
    assert (round(mean, 3), round(low, 3), round(high, 3), round(shrunk, 1)) == told
    assert wilson_shrunk(average_tasks(scores, n * trials)) == pytest.approx((low, high))
