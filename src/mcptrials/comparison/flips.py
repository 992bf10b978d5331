"""Tasks that one side passes more often than the other, with a transcript of each to read."""

from collections.abc import Sequence
from typing import Any

from mcptrials.comparison.side import Side
from mcptrials.record import Record

HALF = 0.5


def task_rows(a: Side, b: Side, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """The tasks whose rates differ, the largest differences first."""
    rows = [row for task_id in tasks if (row := _row(task_id, a, b))]
    return sorted(rows, key=lambda row: (-abs(row["difference"]), row["task_id"]))


def _row(task_id: str, a: Side, b: Side) -> dict[str, Any] | None:
    mine, other = ([each for each in side.by_task[task_id] if each.scored] for side in (a, b))
    if not mine or not other:
        return None
    rates = [sum(each.passed is True for each in records) / len(records) for records in (mine, other)]
    if rates[0] == rates[1]:
        return None
    improved = rates[1] > rates[0]
    return {
        "task_id": task_id,
        "a": {"passed": sum(each.passed is True for each in mine), "scored": len(mine), "rate": rates[0]},
        "b": {"passed": sum(each.passed is True for each in other), "scored": len(other), "rate": rates[1]},
        "difference": rates[1] - rates[0],
        # The better side passes it more often than not, and the other does not.
        "flipped": max(rates) > HALF >= min(rates),
        "transcripts": {
            "a": _path(a, _example(mine, passed=not improved)),
            "b": _path(b, _example(other, passed=improved)),
        },
    }


def _example(records: Sequence[Record], *, passed: bool) -> Record:
    return next((each for each in records if each.passed is passed), records[0])


def _path(side: Side, record: Record) -> str:
    return str(side.run.folder / record.transcript)
