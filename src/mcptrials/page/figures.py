"""Figures: where the marks of a chart lie, as shares of its width or height in percent.

The page draws its charts itself, row by row, with text that stays text: it can be searched, printed, read aloud, and
read on a narrow screen.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mcptrials.stats import wilson_interval

MAX_ROWS = 300
"""Tasks drawn; the data hold all."""
_TENTH = 0.1
_COLORS = 6
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """A range of values across a chart."""

    low: float = 0.0
    high: float = 1.0

    def at(self, value: float) -> str:
        """Where a value lies; outside, at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{100 * share:.2f}%"

    @property
    def ticks(self) -> tuple[float, ...]:
        return tuple(self.low + (self.high - self.low) * quarter / 4 for quarter in range(5))


SHARES = Axis()


@dataclass(frozen=True)
class Series:
    """One arm of one run, with its place among the colours."""

    index: int
    name: str
    run_id: str
    row: Row

    @property
    def color(self) -> int:
        return self.index % _COLORS

    @property
    def largest(self) -> int:
        """The largest k with a pass@k."""
        return max(map(int, self.row["pass_at"]), default=0)


@dataclass(frozen=True)
class Mark:
    """One arm's rate at one task, with Wilson's interval for its trials."""

    series: Series
    row: Row
    low: float | None
    high: float | None


def series_of(summaries: Sequence[Row]) -> list[Series]:
    """The arms of all runs; those that read alike carry their run."""
    arms = [(summary["run_id"], row) for summary in summaries for row in summary["arms"]]
    labels = [row["label"] for _, row in arms]
    return [
        Series(index, row["label"] if labels.count(row["label"]) == 1 else f"{run_id}: {row['label']}", run_id, row)
        for index, (run_id, row) in enumerate(arms)
    ]


def task_marks(summaries: Sequence[Row], series: Sequence[Series]) -> list[tuple[str, list[Mark]]]:
    """A row per task: what fails most comes first, and with two arms what differs most."""
    by_key = {(each.run_id, each.row["arm"]): each for each in series}
    found: dict[str, list[Mark]] = {}
    for summary in summaries:
        for row in summary["tasks"]:
            found.setdefault(row["task_id"], []).append(_mark(by_key[summary["run_id"], row["arm"]], row))
    return sorted(found.items(), key=lambda item: _order([mark.row["rate"] for mark in item[1]]))


def _order(rates: Sequence[float | None]) -> tuple[float, float]:
    known = [rate for rate in rates if rate is not None]
    if not known:
        return (1.0, 1.0)
    return (min(known) - max(known), sum(known) / len(known))


def _mark(series: Series, row: Row) -> Mark:
    n = row["passed"] + row["failed"]
    low, high = wilson_interval(row["passed"], n) if n else (None, None)
    return Mark(series, row, low, high)


def difference_axis(rows: Sequence[Row]) -> Axis:
    """As wide to both sides as the widest interval, in tenths."""
    ends = [abs(row[key]) for row in rows for key in ("difference", "ci_low", "ci_high") if row.get(key) is not None]
    reach = max(_TENTH, math.ceil(round(max(ends, default=_TENTH) / _TENTH, 9)) * _TENTH)
    return Axis(-reach, reach)


def across(largest: int) -> Axis:
    """From the first k to the largest."""
    return Axis(1, max(2, largest))


def curves_of(series: Sequence[Series]) -> list[Series]:
    """The arms with a pass@k for more than one k."""
    return [each for each in series if each.largest > 1]


def name_of(series: Sequence[Series], run_id: str, arm: str) -> str:
    return next((each.name for each in series if (each.run_id, each.row["arm"]) == (run_id, arm)), arm)


def curve(row: Row, name: str) -> list[tuple[int, float]]:
    """pass@k or pass^k by k."""
    return [(int(k), value) for k, value in row[name].items() if value is not None]


def segments(points: Sequence[tuple[int, float]], largest: int) -> Iterator[tuple[str, str, str, str]]:
    """The lines between neighbouring points of a curve."""
    axis = across(largest)
    for (k, value), (next_k, next_value) in pairwise(points):
        yield axis.at(k), SHARES.at(1 - value), axis.at(next_k), SHARES.at(1 - next_value)
