"""pass@k and pass^k of one task."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptrials.stats import largest_k, pass_at_k, pass_hat_k


def test_both_estimators_equal_the_reference_values(oracles: dict[str, Any]) -> None:
    table = oracles["pass_at_k__pass_hat_k"]
    for n, c, k, at, hat in [*table["rows"], *table["large"]]:
        assert pass_at_k(n, c, k) == pytest.approx(at, abs=1e-12), (n, c, k)
        assert pass_hat_k(n, c, k) == pytest.approx(hat, abs=1e-12), (n, c, k)


@pytest.mark.parametrize("n", range(1, 8))
def test_both_estimators_are_the_shares_of_the_subsets_of_the_trials(n: int) -> None:
    for c in range(n + 1):
        trials = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(combinations(trials, k))
            assert pass_at_k(n, c, k) == float(Fraction(sum(map(any, subsets)), len(subsets)))
            assert pass_hat_k(n, c, k) == float(Fraction(sum(map(all, subsets)), len(subsets)))


def test_both_estimators_are_unbiased_for_the_published_table(oracles: dict[str, Any]) -> None:
    n = 12
    for row in oracles["pass_at_k__pass_hat_k"]["article_table"]:
        p = row["p"]
        chances = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        at_3 = math.fsum(chance * pass_at_k(n, c, 3) for c, chance in enumerate(chances))
        hat_3, hat_10 = (math.fsum(chance * pass_hat_k(n, c, k) for c, chance in enumerate(chances)) for k in (3, 10))
        assert (at_3, hat_3, hat_10) == pytest.approx((row["pass@3"], row["pass^3"], row["pass^10"]), abs=1e-12)


def test_fewer_than_k_trials_give_nan_and_not_a_failure() -> None:
    assert math.isnan(pass_at_k(2, 2, 3))
    assert math.isnan(pass_hat_k(2, 0, 3))
    assert math.isnan(pass_hat_k(0, 0, 1))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (-1, 0, 1), (3, 1, 0), (3, 1, -2)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="expected 0 <= c <= n"):
        pass_at_k(n, c, k)
    with pytest.raises(ValueError, match="expected 0 <= c <= n"):
        pass_hat_k(n, c, k)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 300))
    return n, draw(st.integers(0, n))


@given(counts())
def test_pass_at_1_and_pass_hat_1_are_exactly_the_share_of_passes(n_and_c: tuple[int, int]) -> None:
    n, c = n_and_c
    assert pass_at_k(n, c, 1) == pass_hat_k(n, c, 1) == c / n


@given(counts(), st.data())
def test_more_trials_make_one_pass_likelier_and_only_passes_less_likely(
    n_and_c: tuple[int, int], data: st.DataObject
) -> None:
    n, c = n_and_c
    k = data.draw(st.integers(1, n))
    assert 0 <= pass_hat_k(n, c, k) <= c / n <= pass_at_k(n, c, k) <= 1
    if k < n:
        assert pass_at_k(n, c, k) <= pass_at_k(n, c, k + 1)
        assert pass_hat_k(n, c, k) >= pass_hat_k(n, c, k + 1)


@given(counts(), st.data())
def test_at_least_one_pass_is_the_contrary_of_only_failures(n_and_c: tuple[int, int], data: st.DataObject) -> None:
    n, c = n_and_c
    k = data.draw(st.integers(1, n))
    assert pass_at_k(n, c, k) == pytest.approx(1 - pass_hat_k(n, n - c, k), abs=1e-12)


def test_the_largest_k_is_set_by_the_task_with_the_fewest_scored_trials() -> None:
    assert largest_k({"a": [1] * 5, "b": [1, 0, 1]}) == 3
    assert largest_k({"a": [1] * 5, "none scored": []}) == 5
    assert largest_k({}) == 0
