"""What models do first, which calls of theirs go wrong, and which errors servers answer with, on two sides."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mcptrials import excerpt
from mcptrials.comparison.side import Side
from mcptrials.errors import UsageError

MAX_READ = 100
"""Transcripts read of each side for the texts of errors."""
TEXT = 200
NO_CALL = "(no call)"
_WRONG = ("unknown_tools", "argument_errors")
"""Counts of a record."""


def first_calls(side: Side, tasks: Sequence[str]) -> dict[str, Any]:
    """Which tool the trials call first, by share; and how often it is none of the task's expected tools."""
    count: Counter[str] = Counter()
    wrong = judged = 0
    for task_id in tasks:
        expected = {name.rpartition("/")[2] for name in side.tasks[task_id].expected_tools}
        for record in side.by_task[task_id]:
            if not record.scored:
                continue
            first = record.called[0] if record.called else NO_CALL
            count[first] += 1
            if expected and record.called:
                judged += 1
                wrong += first.rpartition("/")[2] not in expected
    total = sum(count.values())
    return {
        "shares": {name: number / total for name, number in count.most_common()},
        "wrong": wrong / judged if judged else None,
        "n_judged": judged,
    }


def wrong_calls(side: Side, tasks: Sequence[str]) -> dict[str, Any]:
    """In how many trials a tool was called that the model was not shown, or with arguments that do not fit its schema.

    `names`: trials by the name of such a tool.
    """
    records = [record for task_id in tasks for record in side.by_task[task_id] if record.scored]
    names = Counter(excerpt.beginning(name, TEXT) for record in records for name in record.unknown_names)
    counts = {what: sum(getattr(record, what) > 0 for record in records) for what in _WRONG}
    shares = {what: {"trials": n, "share": n / len(records) if records else None} for what, n in counts.items()}
    return {"of": len(records), **shares, "names": dict(names.most_common())}


def error_texts(a: Side, b: Side, tasks: Sequence[str]) -> dict[str, Any]:
    """Errors that servers answered with on one side only, most frequent first."""
    mine, read_a, of_a = _errors(a, tasks)
    other, read_b, of_b = _errors(b, tasks)
    return {
        "only_a": _rows(mine, other),
        "only_b": _rows(other, mine),
        "both": len(mine.keys() & other.keys()),
        "read": {"a": read_a, "of_a": of_a, "b": read_b, "of_b": of_b},
    }


def _rows(found: Counter[tuple[str, str]], other: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"tool": tool, "text": text, "trials": number}
        for (tool, text), number in found.most_common()
        if (tool, text) not in other
    ]


def _errors(side: Side, tasks: Sequence[str]) -> tuple[Counter[tuple[str, str]], int, int]:
    """Trials by tool and text of an error; how many transcripts were read, and how many have errors."""
    records = [
        record
        for task_id in tasks
        for record in side.by_task[task_id]
        if record.scored and record.tool_errors + record.protocol_errors
    ]
    step = max(1, -(-len(records) // MAX_READ))  # spread over the tasks
    found: Counter[tuple[str, str]] = Counter()
    read = 0
    for record in records[::step]:
        try:
            calls = side.run.calls(record)
        except UsageError:
            continue
        read += 1
        failed = (each.answer for each in calls if each.answer)
        found.update(
            {
                (each.tool, excerpt.beginning(each.shown, TEXT))
                for each in failed
                if each.status in ("tool_error", "protocol_error")
            }
        )
    return found, read, len(records)
