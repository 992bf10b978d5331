"""Quantiles of Student's t: the one place that needs scipy, which is loaded when the first quantile is asked for."""


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
