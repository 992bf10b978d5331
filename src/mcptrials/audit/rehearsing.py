"""Rehearsing: each task is played by its reference, which must pass, and by agents that must not; no model is asked."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from mcptrials import plugins
from mcptrials.audit.asking_back import asking_hint
from mcptrials.audit.faults import Fault, Planting
from mcptrials.audit.line import Doubt, Line
from mcptrials.audit.perturbing import unshaken
from mcptrials.audit.trail import is_gone, told_by
from mcptrials.errors import UsageError
from mcptrials.events import ToolShown
from mcptrials.project import Project
from mcptrials.rollout import TaskBench
from mcptrials.runner.rehearsal import Played, Rehearsal
from mcptrials.runner.standins import RESTRAINED, can_be_tried, first_that_passes, passes, wrong_answers
from mcptrials.task import Reference, ReferenceCall, Task
from mcptrials.trial import StateValue

SIDE_BY_SIDE = 4
"""Trials at a time, where each has servers of its own."""
MAX_EXPLAINED = 3
"""Tasks for which it is looked for what they depend on; where more fail, something else is wrong."""
MAX_CULPRITS = 20
"""Other tasks that are tried as the one which a task depends on."""

_CHANGING = Doubt(
    "unstable: played again, its reference's calls are answered otherwise where its answer comes from",
    "ask for what stays as it is, or let the environment fix it: the clock, random values, the order of lists",
)

Notice = Callable[[str], None]


@dataclass
class TaskVerdict:
    """What is wrong with one task."""

    task: Task
    broken: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    remarks: list[Doubt] = field(default_factory=list)
    """What may be wrong with what it asks, each with what would help."""
    misnamed: list[Line] = field(default_factory=list)
    """What it names that is not there."""
    fixes: dict[str, str] = field(default_factory=dict)
    """What would help against some of what breaks it."""
    answer_suffices: bool = False
    """Whether it passes by its right answer, though nothing is done."""

    @property
    def status(self) -> str:
        doubtful = self.doubts or self.remarks or self.misnamed or self.task.reference is None
        return "broken" if self.reason else "warning" if doubtful else "ok"

    @property
    def reason(self) -> str | None:
        """The first for which it is broken."""
        return next(iter([*(line.what for line in self.misnamed if line.level == "fail"), *self.broken]), None)

    @property
    def is_playable(self) -> bool:
        """Whether it has a reference whose calls can be made."""
        wrong = any(line.level == "fail" and line.facts["reference"] for line in self.misnamed)
        return self.task.reference is not None and not wrong


class Rehearsing:
    """The rehearsal of a suite."""

    def __init__(self, project: Project, rehearsal: Rehearsal, verdicts: Sequence[TaskVerdict], notice: Notice) -> None:
        self._project, self._rehearsal, self._notice = project, rehearsal, notice
        self._tasks = [verdict.task for verdict in verdicts]
        self.verdicts = {verdict.task.id: verdict for verdict in verdicts}
        self.alone: dict[str, Played] = {}
        """References that passed, by task."""
        self.first: dict[str, Played] = {}
        """All references, as they were played at first."""

    async def run(self) -> None:
        with_reference = [task for task in self._tasks if self.verdicts[task.id].is_playable]
        await self._learn_states([task for task in with_reference if self._compares(task)])
        known = [task for task in with_reference if not self.verdicts[task.id].broken]
        readers = [task for task in known if self._rehearsal.may_only_read(task)]
        writers = [task for task in known if task not in readers]
        first = await self._each("reference", readers, self._rehearsal.play_reference)
        # Before anything is written, so that nothing can have been left by others.
        for played in [*first, *await self._each("reference", writers, self._rehearsal.play_reference)]:
            self.first[played.task.id] = played
            await self._judge_alone(played, known)
        await self._play_again()
        await self._try_agents()
        for task_id, played in self.alone.items():
            bench = self._rehearsal.tasks[task_id]
            self.verdicts[task_id].broken += await unshaken(played, bench, self._project)

    async def _play_again(self) -> None:
        """After all others: those that write first, each by itself, then those that only read."""
        readers = [played.task for played in self.alone.values() if self._rehearsal.only_reads(played)]
        calling = [task for task in readers if task.reference and task.reference.calls]
        writers = [played.task for played in self.alone.values() if played.task not in readers]
        again = await self._each("reference after the others", writers[::-1], self._rehearsal.play_reference)
        for alike in self._rehearsal.worlds(self._rehearsal.tasks[task.id] for task in calling):
            again += await self._rehearsal.play_readers([bench.task for bench in alike])
        for played in again:
            before = self.alone[played.task.id]
            if why := _why(played):
                said = f"its reference passes at first, and fails after the others were played: {why}"
                self.verdicts[played.task.id].broken.append(f"{said}; trials are not isolated from each other")
            elif is_gone(before, [told_by(made) for made in played.transcript.calls]):
                self.verdicts[played.task.id].remarks.append(_CHANGING)

    async def faults(self) -> list[Fault]:
        """What the suite notices of faults in the server, by the references that pass."""
        sound = [each for each in self.alone.values() if not self.verdicts[each.task.id].broken]
        if any(each.transcript.calls for each in sound):
            self._notice("planting faults in the answers of the servers")
        return await Planting(self._rehearsal, sound).faults()

    def _compares(self, task: Task) -> bool:
        return any(query.of == "reference" for query in self._rehearsal.tasks[task.id].queries)

    async def _learn_states(self, tasks: Sequence[Task]) -> None:
        states: dict[str, Mapping[str, StateValue]] = {}

        async def learn(task: Task) -> None:
            try:
                states[task.id] = await self._rehearsal.reference_state(task)
            except UsageError as exc:
                self.verdicts[task.id].broken.append(exc.what)

        await self._each("state of the reference", tasks, learn)
        self._rehearsal = self._rehearsal.knowing(states)

    async def _each(self, what: str, tasks: Sequence[Task], play: Callable[[Task], Awaitable[Any]]) -> list[Any]:
        """Some at a time, in the order of their tasks; those who share a server one by one."""
        limiter = anyio.CapacityLimiter(1 if self._rehearsal.shares_servers else SIDE_BY_SIDE)
        found: dict[int, Any] = {}

        async def one(number: int, task: Task) -> None:
            async with limiter:
                self._notice(f"playing the {what}: {task.id} ({number + 1} of {len(tasks)})")
                found[number] = await play(task)

        async with anyio.create_task_group() as group:
            for number, task in enumerate(tasks):
                group.start_soon(one, number, task)
        return [found[number] for number in sorted(found)]

    async def _judge_alone(self, played: Played, others: Sequence[Task]) -> None:
        why = _why(played)
        if why is None:
            self.alone[played.task.id] = played
            return
        said = f"its reference fails: {why}"
        failed = sum(bool(verdict.broken) for verdict in self.verdicts.values())
        if failed < MAX_EXPLAINED and (culprit := await self._depends_on(played.task, others)):
            said = f"{said}; it passes after the reference of task {culprit}: it depends on it"
        self.verdicts[played.task.id].broken.append(said)
        if hint := asking_hint(played):
            self.verdicts[played.task.id].fixes[said] = hint

    async def _depends_on(self, task: Task, others: Sequence[Task]) -> str | None:
        """The other task whose reference has to be played first."""
        own = task.reference or Reference()
        for other in [each for each in others if each.id != task.id and each.reference][:MAX_CULPRITS]:
            before = other.reference.calls if other.reference else ()
            if not before:
                continue
            calls = (*before, *own.calls)
            played = await self._rehearsal.play_reference(
                task.model_copy(update={"reference": own.model_copy(update={"calls": calls})})
            )
            if _why(played) is None:
                return other.id
        return None

    async def _try_agents(self) -> None:
        """Per world, one agent that does nothing and one that calls every tool, but none that may write elsewhere."""
        landed = {tool for played in self.alone.values() for tool in self._rehearsal.landed(played)}

        def every_tool(tools: Iterable[ToolShown]) -> list[ReferenceCall]:
            harmless = [
                tool
                for tool in tools
                if self._rehearsal.is_reading(tool.server, tool.tool) or (tool.server, tool.tool) in landed
            ]
            return [
                ReferenceCall(server=each.server, tool=each.tool, args=_sample(each.input_schema)) for each in harmless
            ]

        benches = [self._rehearsal.tasks[task.id] for task in self._tasks if can_be_tried(task)]
        for alike in self._rehearsal.worlds(benches):
            idle = await self._rehearsal.play_together(alike, _replay(()))
            self._notice("playing an agent that calls every tool once")
            busy = await self._rehearsal.play_together(alike, _replay(every_tool))
            for bench in alike:
                await self._judge_agents(bench, idle, busy)

    async def _judge_agents(self, bench: TaskBench, idle: Played, busy: Played) -> None:
        verdict, answers = self.verdicts[bench.task.id], wrong_answers(bench.task, self._project.suite)
        if idle.ended.outcome is None or busy.ended.outcome is None:
            verdict.doubts.append(f"agents that should fail could not be played: {idle.trouble or busy.trouble}")
            return
        idle_state, busy_state = idle.ended.outcome.state, busy.ended.outcome.state
        if said := await first_that_passes(bench, answers, idle_state):
            told = verdict.doubts if bench.task.expects in RESTRAINED else verdict.broken
            told.append(f"passes with {said} and without a call")
        elif said := await first_that_passes(bench, answers, busy_state, busy.transcript):
            verdict.broken.append(f"passes with {said} and a senseless call of every tool")
        await self._judge_silence(bench, idle_state)

    async def _judge_silence(self, bench: TaskBench, idle_state: Mapping[str, StateValue]) -> None:
        """A task whose reference writes must not pass with the right answer alone.

        What tools that declare to read leave on the disk is book-keeping of their own.
        """
        played = self.alone.get(bench.task.id)
        reference, verdict = bench.task.reference, self.verdicts[bench.task.id]
        if played is None or reference is None:
            return
        verdict.answer_suffices = await passes(bench, reference.answer, idle_state)
        calls = [made.call for made in played.transcript.calls]
        reads = all(self._rehearsal.is_reading(str(call.server), call.tool) for call in calls)
        if verdict.answer_suffices and not reads and self._rehearsal.writes(played):
            what = "passes with the right answer though nothing is done: no grader sees what its reference changes"
            declared = self._rehearsal.declares_writes(played)
            (verdict.broken if declared else verdict.doubts).append(what)


def _why(played: Played) -> str | None:
    """Why a reference does not pass; what it says of a held-out task's answer stays unsaid."""
    complaint = played.complaint
    return played.trouble or (complaint.partition(": ")[0] if complaint and _is_secret(played.task) else complaint)


def _is_secret(task: Task) -> bool:
    return task.split == "held_out"


def _replay(calls: Any) -> Any:
    return plugins.load("hosts", "mcptrials.hosts.replay:Replay")(calls)


def _sample(schema: Any) -> dict[str, Any]:
    """Arguments of the right types for what a tool requires, and of no sense."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return {}
    return {name: _value(properties.get(name)) for name in required if isinstance(name, str)}


_SAMPLES: Mapping[Any, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}


def _value(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return "x"
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kind = schema.get("type")
    return _SAMPLES.get(kind if isinstance(kind, str) else None, "x")
