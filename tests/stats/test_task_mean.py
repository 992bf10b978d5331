"""The mean over tasks and its cluster-robust standard error."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS

from mcptrials.stats import TaskMean, average_tasks

SCORES = st.lists(st.integers(0, 5).map(lambda passes: passes / 5), min_size=2, max_size=30)


def cr2_by_matrices(scores: list[float], groups: list[int]) -> tuple[float, float]:
    """SE and Bell-McCaffrey df of the mean by the general matrix form, with an inverse root by eigenvalues."""
    y, labels, n = np.array(scores), np.array(groups), len(scores)
    x = np.ones((n, 1))
    hat = x @ x.T / n
    residual_maker, residuals = np.eye(n) - hat, y - y.mean()
    meat, columns = 0.0, []
    for label in np.unique(labels):
        mine = labels == label
        values, vectors = np.linalg.eigh((np.eye(n) - hat)[np.ix_(mine, mine)])
        adjust = vectors @ np.diag(values**-0.5) @ vectors.T
        meat += float(x[mine, 0] @ adjust @ residuals[mine]) ** 2
        columns.append(residual_maker[:, mine] @ adjust @ x[mine, 0] / n)
    gram = np.array(columns) @ np.array(columns).T
    return math.sqrt(meat) / n, float(np.trace(gram) ** 2 / np.trace(gram @ gram))


@st.composite
def grouped(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    scores = draw(SCORES)
    groups = draw(st.lists(st.integers(0, 6), min_size=len(scores), max_size=len(scores)))
    groups[:2] = [0, 1]
    return scores, groups


def test_uneven_groups_give_the_reference_error_and_degrees_of_freedom(oracles: dict[str, Any]) -> None:
    case = oracles["clustered_se"]["task_means_grouped_12_in_5"]
    alone = average_tasks(case["task_means"], n_trials=60)
    together = average_tasks(case["task_means"], n_trials=60, groups=case["group"])
    assert alone.se == pytest.approx(case["se_clt_ignoring_groups"], abs=1e-12)
    assert (together.mean, together.se, together.df) == pytest.approx(
        (case["mean"], case["se_cr2"], case["bm_df"]), abs=1e-12
    )
    assert (alone.n_groups, together.n_groups) == (12, 5)


@settings(max_examples=50, deadline=None)
@given(grouped())
def test_the_closed_forms_equal_the_general_matrix_form(tasks: tuple[list[float], list[int]]) -> None:
    scores, groups = tasks
    x = average_tasks(scores, n_trials=len(scores), groups=groups)
    se, df = cr2_by_matrices(scores, groups)
    assert x.se == pytest.approx(se, abs=1e-9)
    assert x.df == pytest.approx(df, rel=1e-9)
    assert 1 - 1e-9 <= x.df <= x.n_groups - 1 + 1e-9


def test_equal_groups_give_the_clustered_error_of_statsmodels() -> None:
    scores, groups = [1, 0.8, 0.6, 0.2, 0, 0.4, 1, 1, 0.2], [0, 0, 0, 1, 1, 1, 2, 2, 2]
    x = average_tasks(scores, n_trials=45, groups=groups)
    fit = OLS(scores, np.ones(9)).fit(cov_type="cluster", cov_kwds={"groups": np.array(groups)})
    # statsmodels multiplies by G/(G-1) and (N-1)/(N-1): the second factor is 1 with an intercept only.
    assert x.se == pytest.approx(float(fit.bse[0]), abs=1e-12)
    assert x.df == 2


@settings(max_examples=50, deadline=None)
@given(SCORES)
def test_a_group_for_each_task_is_the_same_as_no_groups(scores: list[float]) -> None:
    alone = average_tasks(scores, n_trials=len(scores))
    labelled = average_tasks(scores, n_trials=len(scores), groups=[f"group of {i}" for i in range(len(scores))])
    assert alone == labelled
    assert alone.df == len(scores) - 1
    assert alone.se == pytest.approx(float(np.std(scores, ddof=1)) / math.sqrt(len(scores)), abs=1e-12)


def test_scores_that_do_not_vary_have_an_error_of_exactly_zero() -> None:
    assert average_tasks([0.6] * 7, n_trials=35).se == 0
    assert average_tasks([0.1, 0.7, 0.7, 0.1], n_trials=20, groups=[0, 0, 1, 1]).se == 0


def test_the_minority_counts_units_and_not_tasks() -> None:
    scores = [1, 1, 0.999, 0.6, 0, 0]
    assert average_tasks(scores, n_trials=30).minority == 4
    assert average_tasks(scores, n_trials=30, groups=[0, 0, 1, 1, 2, 2]).minority == 2


@pytest.mark.parametrize(("scores", "groups"), [([], None), ([0.5], None), ([0.5, 1.0], [0, 0])])
def test_one_independent_unit_has_no_spread(scores: list[float], groups: list[int] | None) -> None:
    with pytest.raises(ValueError, match="needs at least two"):
        average_tasks(scores, n_trials=10, groups=groups)


def test_a_label_for_every_task_is_demanded() -> None:
    with pytest.raises(ValueError, match="zip"):
        average_tasks([0.5, 1.0, 0.0], n_trials=3, groups=[0, 1])


def test_the_summary_can_be_written_down() -> None:
    x = TaskMean(mean=0.5, se=0.1, df=9, n_trials=50, n_groups=10, minority=8)
    with pytest.raises(AttributeError):
        x.mean = 1  # type: ignore[misc]


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_what_is_no_number_has_no_mean(score: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        average_tasks([score, 1.0], 2)
