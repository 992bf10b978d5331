"""Tasks: what was found of each, as lines and rows, and kept for the next run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcptrials.audit.balance import balance_lines, twins
from mcptrials.audit.faults import Fault
from mcptrials.audit.line import Line
from mcptrials.audit.naming import Names
from mcptrials.audit.places import World, task_lines
from mcptrials.audit.reading import read_task
from mcptrials.audit.rehearsing import Notice, Rehearsing, TaskVerdict
from mcptrials.counting import counted
from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.runner.building import Workshop
from mcptrials.runner.rehearsal import Played, Rehearsal
from mcptrials.runner.soundness import remember, sound_key, unfit_answers
from mcptrials.runner.standins import RESTRAINED
from mcptrials.task import Task

_NAMED = 5
_MEND = "mend the task; --set broken_tasks=run runs it as it is"
_NO_REFERENCE = "give each a reference: {answer, calls}"


@dataclass(frozen=True, slots=True)
class TaskFindings:
    """What was found: lines, a row per task, a row per planted fault."""

    lines: Sequence[Line] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    faults: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """What can be named: tools and their arguments; files, tables and columns of each world."""

    names: Names
    worlds: Mapping[str, World]

    def places_of(self, task: Task, played: Played | None, project: Project, workshop: Workshop) -> list[Line]:
        """Places that a task names and that are not there.

        Args:
            played: its reference.
        """
        world = self.worlds.get(workshop.environment_hashes()[task.id])
        went_well = played if played and played.trouble is None else None
        return task_lines(task, workshop.environment(task), world, went_well, project) if world else []


async def task_findings(
    project: Project, workshop: Workshop, tasks: Sequence[Task], notice: Notice, named: Named
) -> TaskFindings:
    """What was found of these tasks."""
    ready = [task for task in tasks if not task.draft and await _is_ready(task, workshop)]
    verdicts = [TaskVerdict(task, misnamed=named.names.lines_of(task)) for task in ready]
    rehearsal, trouble = await _rehearsal(project, workshop)
    played: Mapping[str, Played] = {}
    first: Mapping[str, Played] = {}
    faults: Sequence[Fault] = []
    if rehearsal is None:
        await _without_servers(workshop, verdicts)
    else:
        rehearsing = Rehearsing(project, rehearsal, verdicts, notice)
        await rehearsing.run()
        played, first = rehearsing.alone, rehearsing.first
        faults = await rehearsing.faults()
    for verdict in verdicts:
        verdict.misnamed += named.places_of(verdict.task, first.get(verdict.task.id), project, workshop)
    if rehearsal is not None:
        _remember(project, workshop, verdicts)
    _read(project, workshop, verdicts, played)
    lines = [line for verdict in verdicts for line in _lines(verdict)] + _summary(verdicts, len(played), trouble)
    lines += balance_lines(_kept(project))
    rows = [_row(verdict) for verdict in verdicts]
    return TaskFindings([*lines, *_fault_lines(faults)], rows, [fault.row() for fault in faults])


async def _is_ready(task: Task, workshop: Workshop) -> bool:
    """Whether its environment can be made; that it cannot is told by the check of the environment."""
    with suppress(UsageError):
        await workshop.try_environment(task)
    if workshop.was_tried(task):
        with suppress(UsageError):  # what changes is then not looked at, beyond what graders ask for
            await workshop.watch(task)
    return workshop.was_tried(task)


async def _rehearsal(project: Project, workshop: Workshop) -> tuple[Rehearsal | None, str | None]:
    """The first variant that has servers, or why there is none."""
    variant = next((name for name in project.config.variants if project.config.servers_of(name)), None)
    if variant is None:
        return None, "no variant has servers"
    try:
        await workshop.try_variant(variant)
    except UsageError as exc:
        return None, exc.what
    return workshop.rehearsal(variant), None


async def _without_servers(workshop: Workshop, verdicts: Sequence[TaskVerdict]) -> None:
    """Adds what can be told of files alone."""
    benches = [workshop.task_bench(verdict.task) for verdict in verdicts]
    broken, idle = await unfit_answers(benches), await workshop.passing_idly(benches)
    for verdict in verdicts:
        verdict.broken += [broken[verdict.task.id]] if verdict.task.id in broken else []
        if said := idle.get(verdict.task.id):
            (verdict.doubts if verdict.task.expects in RESTRAINED else verdict.broken).append(said)


def _remember(project: Project, workshop: Workshop, verdicts: Sequence[TaskVerdict]) -> None:
    hashes = workshop.environment_hashes()
    found = {each.task.id: each for each in verdicts}
    remember(
        project,
        {task_id: (sound_key(each.task, hashes[task_id], project), each.reason) for task_id, each in found.items()},
    )


def _read(project: Project, workshop: Workshop, verdicts: Sequence[TaskVerdict], played: Mapping[str, Played]) -> None:
    """Adds what can be told of tasks by reading them."""
    alike = twins(_kept(project))
    for verdict in verdicts:
        task = verdict.task
        is_reset = (project.config.environment or task.environment) is not None
        verdict.remarks += read_task(verdict, workshop.task_bench(task), played.get(task.id), is_reset=is_reset)
        verdict.remarks += [alike[task.id]] if task.id in alike else []


def _kept(project: Project) -> list[Task]:
    return [task for task in project.suite.tasks if not task.draft]


def _lines(verdict: TaskVerdict) -> list[Line]:
    task_id = verdict.task.id
    idle = "ask for more, or say noop_should_pass: true if that is right"
    fixes = {what: idle if what.startswith("passes with") else _MEND for what in (*verdict.broken, *verdict.doubts)}
    fixes |= verdict.fixes
    return [
        *verdict.misnamed,
        *(Line("tasks", "fail", task_id, what, fixes[what]) for what in verdict.broken),
        *(Line("tasks", "warn", task_id, what, fixes[what]) for what in verdict.doubts),
        *(Line("tasks", "warn", task_id, each.what, each.fix) for each in verdict.remarks),
    ]


def _summary(verdicts: Sequence[TaskVerdict], played: int, trouble: str | None) -> list[Line]:
    without = [verdict.task.id for verdict in verdicts if verdict.task.reference is None]
    lines = []
    if without:
        named = ", ".join(without[:_NAMED]) + (f" and {len(without) - _NAMED} more" if len(without) > _NAMED else "")
        what = f"{len(without)} without a reference, so nobody knows whether they can be passed: {named}"
        lines.append(Line("tasks", "warn", "references", what, _NO_REFERENCE))
    if trouble:
        what = f"not played: {trouble}"
        lines.append(Line("tasks", "warn", "rehearsal", what, "mend the servers first"))
    sound = sum(verdict.status == "ok" for verdict in verdicts)
    facts = {"tasks": len(verdicts), "sound": sound, "references_passed": played}
    if sound:
        what = f"{sound} of {len(verdicts)} sound: agents that do nothing or guess fail"
        passing = counted(played, "reference passes", "references pass")
        what += f"; {passing}, alone and after the others" if played else ""
        lines.append(Line("tasks", "ok", "tasks", what, None, facts))
    return lines


def _fault_lines(faults: Sequence[Fault]) -> list[Line]:
    if not faults:
        return []
    noticed = sum(bool(fault.noticed_by) for fault in faults)
    what = f"this suite notices {noticed} of {len(faults)} faults that are planted in the servers"
    facts = {"faults": len(faults), "noticed": noticed}
    return [Line("tasks", "ok", "faults", what, None, facts)]


def _row(verdict: TaskVerdict) -> dict[str, Any]:
    missing = [] if verdict.task.reference else ["it has no reference"]
    return {
        "task_id": verdict.task.id,
        "status": verdict.status,
        "reasons": [
            *(line.what for line in verdict.misnamed),
            *verdict.broken,
            *verdict.doubts,
            *(each.what for each in verdict.remarks),
            *missing,
        ],
    }
