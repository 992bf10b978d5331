"""Shares and differences as a person reads them."""

import pytest

from mcptrials.shares import points, whole_change


@pytest.mark.parametrize(
    ("share", "in_points", "in_percent"),
    [
        (-0.004, "-0.4", "+0"),
        (-0.0004, "+0.0", "+0"),
        (0.0, "+0.0", "+0"),
        (-0.014, "-1.4", "-1"),
        (0.25, "+25.0", "+25"),
    ],
)
def test_what_rounds_to_nothing_has_no_sign_of_its_own(share: float, in_points: str, in_percent: str) -> None:
    assert (points(share), whole_change(share)) == (in_points, in_percent)
