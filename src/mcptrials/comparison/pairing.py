"""Which tasks two sides share: of equal task, environment and graders."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mcptrials.comparison.side import Side
from mcptrials.encoding import canonical_hash
from mcptrials.record import Record
from mcptrials.task import Task


@dataclass(frozen=True)
class Pairing:
    """The tasks of two sides."""

    paired: tuple[str, ...]
    """With a record on both sides."""
    added: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[tuple[str, str], ...]
    """Task ids with what of them differs."""
    untried: tuple[str, ...]
    """Of both sides, and without a record on one of them."""

    def document(self) -> dict[str, Any]:
        return {
            "paired": list(self.paired),
            "added": list(self.added),
            "removed": list(self.removed),
            "edited": [{"task_id": task_id, "what": what} for task_id, what in self.edited],
            "untried": list(self.untried),
        }


def pair(a: Side, b: Side) -> Pairing:
    """The tasks that can be compared, and why others cannot."""
    shared = [task_id for task_id in a.tasks if task_id in b.tasks]
    edited = {task_id: what for task_id in shared if (what := _edited(task_id, a, b))}
    tried = [task_id for task_id in shared if a.by_task[task_id] and b.by_task[task_id]]
    return Pairing(
        paired=tuple(task_id for task_id in tried if task_id not in edited),
        added=tuple(task_id for task_id in b.tasks if task_id not in a.tasks),
        removed=tuple(task_id for task_id in a.tasks if task_id not in b.tasks),
        edited=tuple(edited.items()),
        untried=tuple(task_id for task_id in shared if task_id not in edited and task_id not in tried),
    )


def _edited(task_id: str, a: Side, b: Side) -> str:
    mine, other = _hashes(task_id, a), _hashes(task_id, b)
    if None in (mine["task"], other["task"]):
        mine["task"], other["task"] = a.tasks[task_id].hash, b.tasks[task_id].hash
    elif None not in (mine["graders"], other["graders"]) and _differ_in_graders(
        a.tasks[task_id], b.tasks[task_id], (mine["task"], other["task"])
    ):
        mine["task"] = other["task"]  # the graders that count are those of the last grading, which speak for themselves
    return ", ".join(noun for noun in mine if None not in (mine[noun], other[noun]) and mine[noun] != other[noun])


def _differ_in_graders(one: Task, another: Task, hashes: tuple[str | None, str | None]) -> bool:
    """Whether two tasks ask the same, and were only graded otherwise when they were run."""
    if hashes != (one.hash, another.hash) or one.hash == another.hash:
        return False
    bare = [each.model_copy(update={"graders": ()}) for each in (one, another)]
    return bare[0].hash == bare[1].hash


def _hashes(task_id: str, side: Side) -> dict[str, str | None]:
    """What decides a task's meaning, by noun; None where no record says it."""
    records = side.by_task[task_id]
    return {
        "task": next((each.task_hash for each in records if each.task_hash), None),
        "environment": next((each.environment_hash for each in records if each.environment_hash), None),
        "graders": _graders(records),
    }


def _graders(records: Iterable[Record]) -> str | None:
    """The graders of the first trial that was graded; a trial that broke off before has none."""
    graded = next((each.graders for each in records if each.graders), None)
    if graded is None:
        return None
    return canonical_hash(sorted([each.type, each.name or "", each.hash or ""] for each in graded))
