"""Side: one arm of one run, with the records that are compared."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mcptrials.errors import UsageError
from mcptrials.record import Record
from mcptrials.source import nearest
from mcptrials.store import Run
from mcptrials.task import Task
from mcptrials.trial import Arm


@dataclass(frozen=True)
class Side:
    """One arm of one run."""

    run: Run
    arm: Arm
    arm_id: str
    records: tuple[Record, ...]
    """One per trial of the plan that was tried."""
    tasks: Mapping[str, Task]
    planned: int

    @property
    def name(self) -> str:
        return f"{self.run.run_id}:{self.arm.variant}"

    @cached_property
    def by_task(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {task_id: [] for task_id in self.tasks}
        for record in self.records:
            found[record.task_id].append(record)
        return found

    @property
    def tool_lists(self) -> Mapping[str, Any]:
        """What each server of the arm said of itself before the run, by name."""
        found = _mapping(_mapping(self.run.manifest.get("preflight")).get(self.arm.variant))
        return {name: each for name, each in found.items() if isinstance(each, Mapping)}

    def stated(self, key: str) -> Any:
        """What the run's manifest says; None when it says nothing."""
        return self.run.manifest.get(key)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def sides_of(run: Run, arm: str | None = None) -> list[Side]:
    """The arms of a run that were tried, or the one that is meant.

    Args:
        arm: an arm's id, its label, or its variant where that is unique.

    Raises:
        UsageError: there is no such arm, or several.
    """
    arms = run.arms
    chosen = list(arms) if arm is None else [_arm(run, arm)]
    tasks = run.tasks
    trials = {task_id: task.trials or run.manifest["trials"] for task_id, task in tasks.items()}
    records: dict[str, list[Record]] = {each: [] for each in chosen}
    for record in run.records():
        if record.arm in records and 1 <= record.trial <= trials.get(record.task_id, 0):
            records[record.arm].append(record)
    planned = sum(trials.values())
    return [Side(run, arms[each], each, tuple(records[each]), tasks, planned) for each in chosen]


def _arm(run: Run, name: str) -> str:
    names: dict[str, list[str]] = {}
    for arm_id, arm in run.arms.items():
        for each in {arm_id, arm.variant, arm.label}:
            names.setdefault(each, []).append(arm_id)
    found = names.get(name, [])
    if not found:
        raise UsageError(f"the run has no arm {name!r}", where=run.run_id, hint=nearest(name, names))
    if len(found) > 1:
        ids = ", ".join(f"{each} ({run.arms[each].label})" for each in found)
        raise UsageError(f"the run has several arms {name!r}", where=run.run_id, hint=f"name one by its id: {ids}")
    return found[0]


def find_sides(names: Iterable[str], find: Callable[[str], Run]) -> list[Side]:
    """The sides that are meant: `RUN`, or `RUN:ARM`; of a single RUN all its arms.

    Args:
        find: gives a run by its id or folder.

    Raises:
        UsageError: nothing by that name, several arms where one is needed, or less than two sides.
    """
    names = list(names)
    read: dict[str, Run] = {}
    sides: list[Side] = []
    for name in names:
        run, arm = _named(name, find, read)
        found = sides_of(run, arm)
        if len(found) > 1 and len(names) > 1:
            arms = ", ".join(dict.fromkeys(f"{name}:{each.arm.variant}" for each in found))
            raise UsageError(f"the run has {len(found)} arms", where=name, hint=f"name one: {arms}")
        sides += found
    if len(sides) < 2:  # noqa: PLR2004 - a comparison
        raise UsageError("the run has one arm: there is nothing to compare it with", hint="name a second run")
    if len({(each.run.folder.resolve(), each.arm_id) for each in sides}) < len(sides):
        raise UsageError("one arm of one run is named twice", hint="name two different ones")
    return sides


def _named(name: str, find: Callable[[str], Run], read: dict[str, Run]) -> tuple[Run, str | None]:
    """A colon may be part of a folder's name and of an arm's label: the longest name of a run is the one meant."""
    parts = name.split(":")
    ways = [(":".join(parts[:n]), ":".join(parts[n:])) for n in range(len(parts), 0, -1)]
    failure: UsageError | None = None
    for run_name, arm in ways:
        try:
            if run_name not in read:
                read[run_name] = find(run_name)
        except UsageError as exc:
            failure = exc
        else:
            return read[run_name], arm or None
    raise failure or UsageError(f"there is no run {name!r}")
