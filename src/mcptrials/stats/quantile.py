"""Quantiles and tails of Student's t by scipy, which is loaded when the first is asked for."""

NEGLIGIBLE_BEYOND = 6
"""P(Z < -6) is 1e-9."""


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
    """The probability that a t variable with noncentrality `shift` lies outside [-critical, critical]."""
    from scipy.special import nctdtr  # noqa: PLC0415 - see above

    # The far tail holds less than P(Z < -shift); scipy gives NaN for some of what is as small as that.
    far = nctdtr(df, shift, -critical) if abs(shift) < NEGLIGIBLE_BEYOND else float(shift < 0)
    return float(1 - nctdtr(df, shift, critical) + far)
