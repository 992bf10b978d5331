"""A share, or the difference of two, as a person reads it; what is not measured is never a number."""

UNKNOWN = "n/a"


def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"


def whole_change(share: float) -> str:
    """In whole percent; `z` since what rounds to nothing has no sign of its own: +0, not -0."""
    return f"{100 * share:+z.0f}"


def points(difference: float | None) -> str:
    """In percentage points."""
    return UNKNOWN if difference is None else f"{100 * difference:+z.1f}"


def points_interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{points(low)}, {points(high)}]"
