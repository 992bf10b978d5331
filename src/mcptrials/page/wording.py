"""Wording: numbers as a person reads them; what is not measured is never a number."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials import excerpt
from mcptrials.encoding import dump_text

UNKNOWN = "n/a"
_READABLE_MS = 100
_TOLD = 0.005
"""Shares that differ by less read alike."""
WORDS = 1_000
"""Characters of a name or a value; only transcripts hold longer texts."""
ROWS = 50
"""Of a list that servers, models or users can make as long as they like."""


def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def whole(share: float) -> str:
    """A tick of an axis."""
    return f"{100 * share:.0f} %"


def bare(share: float | None) -> str:
    """A standard error, in points."""
    return UNKNOWN if share is None else f"{100 * share:.1f}"


def tenth(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f}"


def points(share: float | None) -> str:
    """A difference of two shares, in percentage points."""
    return UNKNOWN if share is None else f"{100 * share:+.1f}"


def tick(share: float) -> str:
    """A difference at an axis."""
    return f"{100 * share:+.0f}" if share else "0"


def sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


def interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"


def points_interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{points(low)}, {points(high)}]"


def duration(ms: float | None) -> str:
    if ms is None:
        return UNKNOWN
    return f"{ms / 1000:,.1f} s" if ms >= _READABLE_MS else f"{ms:.1f} ms"


def count(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.10g}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def measure(name: str, value: float | None) -> str:
    """A measure of trials, with its unit."""
    if value is None:
        return UNKNOWN
    if name == "duration_ms":
        return duration(value)
    return f"${value:.4f}" if name == "cost_usd" else f"{value:,.0f}" if name == "tokens" else f"{value:.2f}"


def relative(row: Mapping[str, Any]) -> str:
    """A measure's difference as a share of its baseline, with its interval."""
    if row["relative"] is None:
        return UNKNOWN
    ends = row["relative_ci"]
    shown = "" if ends is None else f" [{100 * ends[0]:+.0f}, {100 * ends[1]:+.0f}]"
    return f"{100 * row['relative']:+.0f} %{shown}"


def beside(found: Mapping[str, Any]) -> list[str]:
    """What else a comparison says, in a sentence each: what trials without a score could change, and first calls."""
    lines = []
    worst, first = found["worst_case"], found["first_calls"]
    ends = [worst[case]["difference"] for case in ("against", "for")]
    if found["a"]["not_scored"] + found["b"]["not_scored"] and None not in ends:
        lines.append(f"With what is not scored against the second, or for it: {points(ends[0])} to {points(ends[1])}.")
    if None not in (first["a"]["wrong"], first["b"]["wrong"]):
        shares = [percent(first[side]["wrong"]) for side in ("a", "b")]
        lines.append(f"First call to no expected tool: {shares[0]} → {shares[1]}.")
    moved = [
        f"{name} {percent(before)} → {percent(after)}"
        for name in dict.fromkeys([*first["a"]["shares"], *first["b"]["shares"]])
        if abs((after := first["b"]["shares"].get(name, 0.0)) - (before := first["a"]["shares"].get(name, 0.0))) > _TOLD
    ]
    return [*lines, f"First calls: {some(moved)}."] if moved else lines


def side_names(found: Mapping[str, Any]) -> tuple[str, str]:
    """What tells the two sides of a comparison apart, and no more."""
    a, b = found["a"], found["b"]
    keys = ("variant", "label", "arm") if a["run_id"] == b["run_id"] else ("run_id", "name")
    key = next((key for key in keys if a[key] != b[key]), "name")
    return a[key], b[key]


def some(names: Sequence[Any], shown: int = 10) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(str, names[:shown])) + more


def causes(count_by_cause: Mapping[str, int]) -> str:
    return ", ".join(f"{cause} {number}" if number > 1 else cause for cause, number in count_by_cause.items())


def pairs(values: Mapping[str, Any]) -> str:
    """Names with their values; what is not set is left out."""
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


def value(found: Any) -> str:
    """A JSON value; None is what is not there."""
    if found is None:
        return "(none)"
    return excerpt.beginning(found if isinstance(found, str) else dump_text(found), WORDS)
