"""Quantiles and tails of Student's t by scipy, which is loaded when the first is asked for."""

import math

NODES, NEGLIGIBLE_SD, NEGLIGIBLE_LOG = 4001, 9.0, 40.0
"""Of the integral over the spread of a sample: where its density is below 1e-17 it ends."""


def t_quantile(p: float, df: float) -> float:
    """The value that a t variable with `df` degrees of freedom stays below with probability `p`.

    `df` need not be whole: the Bell-McCaffrey degrees of freedom are not.
    Source: scipy's `stdtrit` (Boost's inverse of the incomplete beta function).

    Raises:
        ValueError: `p` is not inside (0, 1), or `df` is not positive.
    """
    if not 0 < p < 1 or not df > 0:
        raise ValueError(f"t quantile of p={p!r}, df={df!r}: expected 0 < p < 1 and df > 0")
    from scipy.special import stdtrit  # noqa: PLC0415 - 40 MB and half a second that most commands never need

    return float(stdtrit(df, p))


def t_tail(t: float, df: float) -> float:
    """The probability that a t variable with `df` degrees of freedom is at least as far from 0 as `t`."""
    from scipy.special import stdtr  # noqa: PLC0415 - see above

    return float(2 * stdtr(df, -abs(t)))


def t_power(shift: float, df: float, critical: float) -> float:
    """The probability that a t variable with noncentrality `shift` lies outside [-critical, critical].

    1 - E[Phi(c s - shift) - Phi(-c s - shift)], s = sqrt(chi2_df / df), by the trapezoid rule over x = log s, whose
    density is proportional to exp(df (x - (e^2x - 1)/2)). scipy's `nctdtr` is NaN for large shifts.
    Source: Owen 1968 (Technometrics 10), section 2.
    """
    import numpy as np  # noqa: PLC0415 - see above
    from scipy.special import ndtr  # noqa: PLC0415

    spread = NEGLIGIBLE_SD / math.sqrt(2 * df)
    x = np.linspace(-spread - NEGLIGIBLE_LOG / df, spread, NODES)
    density = np.exp(df * (x - np.expm1(2 * x) / 2))
    inside = ndtr(critical * np.exp(x) - shift) - ndtr(-critical * np.exp(x) - shift)
    return max(0.0, float(1 - (density * inside).sum() / density.sum()))
