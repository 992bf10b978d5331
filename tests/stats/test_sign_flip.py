"""The exact sign-flip test and the interval that is its inversion."""

import math
import random
import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.stats import sign_flip_interval, sign_flip_p


def by_enumeration(differences: list[float], shift: float = 0.0) -> float:
    values = [each - shift for each in differences]
    total = abs(math.fsum(values)) - 1e-12
    flips = [
        abs(math.fsum(s * v for s, v in zip(signs, values, strict=True)))
        for signs in product((1, -1), repeat=len(values))
    ]
    return sum(each >= total for each in flips) / len(flips)


fifths = st.lists(st.integers(-5, 5).map(lambda each: each / 5), min_size=1, max_size=10)


@settings(max_examples=30, deadline=None)
@given(fifths)
def test_p_is_that_of_listing_all_flips(differences: list[float]) -> None:
    assert sign_flip_p(differences) == pytest.approx(by_enumeration(differences), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-5, 5).map(lambda each: each / 5), min_size=6, max_size=9))
def test_the_interval_is_where_the_test_by_listing_does_not_reject(differences: list[float]) -> None:
    low, high = sign_flip_interval(differences, [1] * len(differences))
    for inside in (low + 1e-6, high - 1e-6):
        if low + 1e-6 < high - 1e-6:
            assert by_enumeration(differences, inside) > 0.05
    for outside in (low - 1e-6, high + 1e-6):
        assert by_enumeration(differences, outside) <= 0.05


def test_listing_convolution_and_saddlepoint_agree_where_they_meet() -> None:
    rng = random.Random(4)
    differences = [rng.randint(-4, 5) / 5 for _ in range(16)]
    listed = sign_flip_interval(differences, [1] * 16)
    # A unit more is convolved; irrational ones have no common denominator, which leaves the saddlepoint.
    more = [*differences, 0.0]
    convolved = sign_flip_interval(more, [1] * 17)
    approximated = sign_flip_interval([each + rng.random() * 1e-9 for each in more], [1] * 17)
    assert convolved == pytest.approx(listed, abs=0.05)
    assert approximated == pytest.approx(convolved, abs=0.012)


def test_groups_weigh_by_their_size() -> None:
    sums, sizes = [0.5, 1.0, 0.2, 0.9, 0.4, 0.6, 0.8], [1, 2, 1, 3, 1, 2, 2]
    low, high = sign_flip_interval(sums, sizes)
    assert 0 < low <= sum(sums) / sum(sizes) <= high
    assert sign_flip_interval([*sums, 0.0], [*sizes, 10])[1] < high


def test_differences_without_a_common_denominator_are_tested_nearly_as_they_are() -> None:
    rng = random.Random(6)
    differences = [rng.gauss(0.3, 0.6) for _ in range(12)]
    assert sign_flip_p(differences) == pytest.approx(by_enumeration(differences), abs=2 / 2**11)


def test_two_thousand_tasks_take_less_than_a_second() -> None:
    rng = random.Random(7)
    twentieths = [rng.randint(-19, 20) / 20 for _ in range(2000)]
    started = time.process_time()
    p, (low, high) = sign_flip_p(twentieths), sign_flip_interval(twentieths, [1] * 2000)
    assert time.process_time() - started < 1
    mean = math.fsum(twentieths) / 2000
    se = math.sqrt(math.fsum((each - mean) ** 2 for each in twentieths)) / 2000
    assert p == pytest.approx(math.erfc(abs(mean / se) / math.sqrt(2)), rel=0.05)
    assert (low, high) == pytest.approx((mean - 1.96 * se, mean + 1.96 * se), abs=1e-4)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number"):
        sign_flip_p([0.5, bad])
    with pytest.raises(ValueError, match="expected a finite number"):
        sign_flip_interval([0.5] * 6 + [bad], [1] * 7)
    with pytest.raises(ValueError, match="at least one"):
        sign_flip_interval([], [])
