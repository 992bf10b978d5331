"""Expected tools against called ones: precision, recall and the table of both; reported, never deciding.

Several ways may lead to a right result, so this says how a task was done and not whether it was.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from mcptrials.record import Record
from mcptrials.task import Task


def expected_tools(arms: Sequence[str], tasks: Mapping[str, Task], records: Sequence[Record]) -> dict[str, Any]:
    """`rows`: per task and arm the mean precision and recall over scored trials; `table`: who was called instead."""
    asked = {task_id: task for task_id, task in tasks.items() if task.expected_tools}
    scored = [record for record in records if record.scored and record.task_id in asked]
    groups = {
        (arm, task_id): [record for record in scored if (record.arm, record.task_id) == (arm, task_id)]
        for arm in arms
        for task_id in asked
    }
    return {
        "rows": [_row(arm, asked[task_id], mine) for (arm, task_id), mine in groups.items() if mine],
        "table": [row for arm in arms for row in _table(arm, asked, [r for r in scored if r.arm == arm])],
    }


def _row(arm: str, task: Task, records: Sequence[Record]) -> dict[str, Any]:
    precisions = [found for record in records if (found := _precision(task, record)) is not None]
    return {
        "task_id": task.id,
        "arm": arm,
        "trials": len(records),
        "precision": mean(precisions) if precisions else None,
        "recall": mean(_recall(task, record) for record in records),
    }


def _precision(task: Task, record: Record) -> float | None:
    """Of the tools called, how many were expected; of none called nothing can be said."""
    called = set(record.called)
    hits = sum(any(same_tool(name, tool) for name in task.expected_tools) for tool in called)
    return hits / len(called) if called else None


def _recall(task: Task, record: Record) -> float:
    """Of the tools expected, how many were called."""
    called = set(record.called)
    expected = set(task.expected_tools)
    return sum(any(same_tool(name, tool) for tool in called) for name in expected) / len(expected)


def same_tool(expected: str, called: str) -> bool:
    """Whether `tool` and `server/tool` may be one: servers are named only where there are several."""
    return expected == called or expected.endswith(f"/{called}") or called.endswith(f"/{expected}")


def _most_first(called: tuple[str, int]) -> tuple[int, str]:
    """Equal counts by name: a set has another order in each process."""
    name, count = called
    return -count, name


def _table(arm: str, tasks: Mapping[str, Task], records: Sequence[Record]) -> list[dict[str, Any]]:
    """In how many trials that expected a tool each tool was called."""
    trials: Counter[str] = Counter()
    called: dict[str, Counter[str]] = {}
    for record in records:
        for expected in dict.fromkeys(tasks[record.task_id].expected_tools):
            trials[expected] += 1
            called.setdefault(expected, Counter()).update(set(record.called))
    return [
        {
            "arm": arm,
            "expected": expected,
            "trials": trials[expected],
            "called": dict(sorted(counts.items(), key=_most_first)),
        }
        for expected, counts in called.items()
    ]
