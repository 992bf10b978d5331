"""Wording: numbers as a person reads them; what is not measured is never a number."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials import excerpt
from mcptrials.comparison.telling import behaviour_lines
from mcptrials.encoding import dump_text
from mcptrials.shares import UNKNOWN, points, whole_change

_READABLE_MS = 100
WORDS = 1_000
"""Characters of a name or a value; only transcripts hold longer texts."""
ROWS = 50
"""Of a list that servers, models or users can make as long as they like."""


def whole(share: float) -> str:
    """A tick of an axis."""
    return f"{100 * share:.0f} %"


def bare(share: float | None) -> str:
    """A standard error, in points."""
    return UNKNOWN if share is None else f"{100 * share:.1f}"


def tenth(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f}"


def tick(share: float) -> str:
    """A difference at an axis."""
    return whole_change(share) if share else "0"


def sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


def duration(ms: float | None) -> str:
    if ms is None:
        return UNKNOWN
    return f"{ms / 1000:,.1f} s" if ms >= _READABLE_MS else f"{ms:.1f} ms"


def count(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.10g}"


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
    shown = "" if ends is None else f" [{whole_change(ends[0])}, {whole_change(ends[1])}]"
    return f"{whole_change(row['relative'])} %{shown}"


def beside(found: Mapping[str, Any]) -> list[str]:
    """What else a comparison says, in a sentence each: what trials without a score could change, and behaviour."""
    worst = found["worst_case"]
    ends = [worst[case]["difference"] for case in ("against", "for")]
    lines = [sentence(line) for line in behaviour_lines(found)]
    if found["a"]["not_scored"] + found["b"]["not_scored"] and None not in ends:
        lines.append(f"With what is not scored against the second, or for it: {points(ends[0])} to {points(ends[1])}.")
    return lines


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
