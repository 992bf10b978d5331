"""Student's t quantile, and that nothing heavy is loaded before one is needed."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from mcptrials.stats import t_quantile


@pytest.mark.parametrize("df", [1, 1.5, 3.286852589641435, 5, 19, 200, 1e6])
@pytest.mark.parametrize("p", [0.005, 0.025, 0.5, 0.9, 0.975, 0.999])
def test_the_quantile_equals_that_of_scipy_stats(p: float, df: float) -> None:
    assert t_quantile(p, df) == pytest.approx(student.ppf(p, df), rel=1e-12, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.5, 0.999), st.floats(1, 1e4))
def test_the_quantile_is_symmetric_about_zero(p: float, df: float) -> None:
    assert t_quantile(1 - p, df) == pytest.approx(-t_quantile(p, df), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("p", "df"), [(0, 5), (1, 5), (-0.1, 5), (0.975, 0), (0.975, -1), (float("nan"), 5)])
def test_a_quantile_that_does_not_exist_is_refused(p: float, df: float) -> None:
    with pytest.raises(ValueError, match="expected 0 < p < 1 and df > 0"):
        t_quantile(p, df)


def test_numpy_and_scipy_are_loaded_by_the_first_quantile_and_not_by_the_import() -> None:
    story = """
import sys
from mcptrials.stats import estimate, t_quantile
estimate({"a": [1, 0, 1]})
heavy = {"numpy", "scipy", "anyio", "httpx", "mcp", "socket", "subprocess"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
t_quantile(0.975, 4)
assert "scipy.special" in sys.modules and "scipy.stats" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", story], check=True, timeout=60)
