"""p values adjusted for their number."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from mcptrials.stats import benjamini_hochberg, holm

Adjust = Callable[[list[float]], list[float]]


def test_both_equal_the_reference_values_in_any_order(oracles: dict[str, Any]) -> None:
    case = oracles["multiplicity"]
    assert holm(case["p"]) == pytest.approx(case["holm"], abs=1e-12)
    assert benjamini_hochberg(case["p"]) == pytest.approx(case["bh"], abs=1e-12)
    assert holm(case["p"][::-1]) == pytest.approx(case["holm"][::-1], abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_both_equal_statsmodels(ps: list[float]) -> None:
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist(), abs=1e-12)
    assert benjamini_hochberg(ps) == pytest.approx(multipletests(ps, method="fdr_bh")[1].tolist(), abs=1e-12)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_none_gives_none_and_what_is_no_probability_is_refused(adjust: Adjust) -> None:
    assert adjust([]) == []
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="p value 1 is"):
            adjust([0.5, bad])
