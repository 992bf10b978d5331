"""Variance between and within tasks."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f_oneway

from mcptrials.stats import VarianceComponents, estimate, variance_components


@pytest.mark.parametrize("case", ["balanced_6x5", "unbalanced"])
def test_components_equal_the_reference_values(case: str, oracles: dict[str, Any]) -> None:
    trials, expected = oracles["clustered_se"][case]["data"], oracles["variance_components"][case]
    components = variance_components(trials)
    assert components.sigma2 == pytest.approx(expected["sigma2_mean_of_task_variances"], abs=1e-12)
    assert components.omega2 == pytest.approx(expected["omega2_clipped"], abs=1e-12)
    assert components.n_tasks == 6


def test_equal_trials_give_the_analysis_of_variance_and_the_error_of_the_mean(oracles: dict[str, Any]) -> None:
    trials, expected = oracles["clustered_se"]["balanced_6x5"]["data"], oracles["variance_components"]["balanced_6x5"]
    components, se = variance_components(trials), estimate(trials).se
    assert components.sigma2 is not None
    assert components.omega2 is not None
    assert se is not None
    assert components.icc == pytest.approx(expected["icc_anova"], abs=1e-12)
    assert components.omega2 / 6 + components.sigma2 / 30 == pytest.approx(se**2, abs=1e-12)
    assert se**2 == pytest.approx(expected["var_of_mean"], abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=4, max_size=4), min_size=2, max_size=12))
def test_the_ratio_of_the_components_is_that_of_the_f_statistic(rows: list[list[float]]) -> None:
    components = variance_components({str(i): row for i, row in enumerate(rows)})
    noise = float(np.mean(np.var(rows, axis=1, ddof=1)))
    assert components.sigma2 == pytest.approx(noise, abs=1e-12)
    if noise > 0:
        f = f_oneway(*rows).statistic
        assert components.omega2 == pytest.approx(max(0.0, (f - 1) * noise / 4), abs=1e-9)


def test_one_trial_per_task_leaves_the_noise_unknown() -> None:
    assert variance_components({"a": [1], "b": [0]}) == VarianceComponents(None, None, None, 0)
    assert variance_components({}) == VarianceComponents(None, None, None, 0)


def test_tasks_with_one_trial_are_left_out_and_one_task_has_no_between_part() -> None:
    components = variance_components({"a": [1, 0], "b": [1], "c": []})
    assert components == VarianceComponents(sigma2=0.5, omega2=None, icc=None, n_tasks=1)


def test_nothing_that_varies_has_no_correlation() -> None:
    assert variance_components({"a": [1, 1], "b": [1, 1]}) == VarianceComponents(0, 0, None, 2)


def test_trials_that_never_differ_within_a_task_are_wholly_correlated() -> None:
    components = variance_components({"a": [1, 1, 1], "b": [0, 0, 0]})
    assert (components.sigma2, components.omega2, components.icc) == (0, 0.5, 1)


def test_less_scatter_between_tasks_than_their_noise_is_clipped_at_zero() -> None:
    components = variance_components({"a": [1, 0], "b": [0, 1], "c": [1, 0]})
    assert components.omega2 == components.icc == 0
    assert math.isclose(components.sigma2 or 0, 0.5)


@pytest.mark.parametrize("trials", [[math.nan, 1], [None, 1], ["1", "0"], [2, 0], "10", None])
def test_what_is_no_score_has_no_variance(trials: Any) -> None:
    with pytest.raises(ValueError, match="task 'a': "):
        variance_components({"a": trials, "b": [1, 0]})
