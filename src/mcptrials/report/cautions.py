"""Cautions: what a reader of a run's rates has to know of its trials and tasks."""

from collections.abc import Iterator, Mapping, Sequence

from mcptrials.counting import counted
from mcptrials.record import Record
from mcptrials.task import Task

WEAK_SHARE = 0.3
"""Warned of, when on more than this share of the tasks passing trials need at most one call."""
MIN_TASKS = 5
"""Below, an interval over tasks says little."""


def cautions(records: Sequence[Record], tasks: Mapping[str, Task]) -> Iterator[str]:
    """One line each."""
    yield from _changed(records)
    yield from _regraded(records)
    yield from _weak_tasks(records, tasks)
    if 0 < len(tasks) < MIN_TASKS:
        yield f"too few tasks for inference: {len(tasks)}; at least {MIN_TASKS} are needed, 20 are a start"


def _regraded(records: Sequence[Record]) -> Iterator[str]:
    """Trials of one task are only comparable when the same graders judged them."""
    hashes: dict[str, set[tuple[str | None, ...]]] = {}
    for record in records:
        if record.graders:
            hashes.setdefault(record.task_id, set()).add(tuple(grade.hash for grade in record.graders))
    mixed = [task_id for task_id, found in hashes.items() if len(found) > 1]
    if mixed:
        yield f"graded by different graders: {counted(len(mixed), 'task')}, {mixed[0]} first; grade the run again"


def _changed(records: Sequence[Record]) -> list[str]:
    """A rate over trials with different servers is no rate of one of them."""
    found = []
    for fault, what in (("tools_changed", "list of tools"), ("version_changed", "version")):
        if count := sum(fault in record.server_faults for record in records):
            found.append(
                f"{counted(count, 'trial')} met a server with another {what} than the check before the run did"
            )
    return found


def _weak_tasks(records: Sequence[Record], tasks: Mapping[str, Task]) -> list[str]:
    calls: dict[str, list[int]] = {}
    for record in records:
        if record.passed and tasks[record.task_id].expects == "act":
            calls.setdefault(record.task_id, []).append(record.tool_calls)
    weak = [task_id for task_id, counts in calls.items() if max(counts) <= 1]
    if not calls or len(weak) <= WEAK_SHARE * len(calls):
        return []
    what = f"{len(weak)} of {counted(len(calls), 'passed task')} that asked to act took at most one call"
    return [f"{what}: the suite tests little of the server"]
