"""Rehearsal: a task played without a model, by its reference or a stand-in, as a trial that nobody records."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NoReturn

from mcptrials import excerpt, plugins
from mcptrials.errors import UsageError
from mcptrials.events import Event
from mcptrials.graders.changes import CHANGES
from mcptrials.grading import grade_all
from mcptrials.presentation import RawTool, read_only
from mcptrials.protocols import Endpoint, GradeInput, Host
from mcptrials.rollout import ArmBench, Bench, Ended, TaskBench, TrialLog, attempt
from mcptrials.runner.preflight import NoWire
from mcptrials.runner.standins import SLOW
from mcptrials.task import Task
from mcptrials.transcript import CallMade, Transcript
from mcptrials.trial import StateValue, Trial, decide

_MAY_REFUSE = ("not_found", "refuse")
"""What is expected of tasks whose reference may be answered with a tool's error."""


_SHOWN = 400


class Unwritten:
    """The files of a trial that leaves none."""

    transcript = ""

    def open_trial(self, trial: Trial) -> "Unwritten":
        del trial
        return self

    def write(self, event: Event) -> None:
        pass

    def wire(self, server: str) -> NoWire:
        del server
        return NoWire()

    def close(self) -> None:
        pass


class NoModel:
    """Stands where a model would; nobody asks it."""

    scripted = True

    @property
    def endpoint(self) -> Endpoint | None:
        return None

    async def request(self, *_: object) -> NoReturn:
        raise NotImplementedError("no model is there to be asked")

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Played:
    """How a task that was played ended."""

    task: Task
    ended: Ended
    transcript: Transcript

    @property
    def trouble(self) -> str | None:
        """What went wrong on the way, whatever the graders say: the first cause, in one line."""
        if self.ended.error is not None:
            return _line(self.ended.error)
        for made in self.transcript.calls:
            if wrong := _wrong(made, may_refuse=self.task.expects in _MAY_REFUSE):
                return wrong
        if self.ended.outcome is None or self.ended.outcome.stop != "answer":
            return f"it ended by {self.ended.outcome.stop if self.ended.outcome else self.ended.decision.cause}"
        return None

    @property
    def complaint(self) -> str | None:
        """What the first deciding grader that does not pass has to say."""
        grades = [grade for grade in self.ended.grades if grade.gate and not grade.passed]
        if not grades or self.ended.decision.verdict == "passed":
            return None
        first = grades[0]
        said = f"{first.reason}: {first.evidence}" if first.evidence else first.reason
        return f"grader {first.name!r} {'cannot decide' if first.value is None else 'says'} {_line(said)}"


def _wrong(made: CallMade, *, may_refuse: bool) -> str | None:
    called = f"{made.call.server}/{made.call.tool}" if made.call.server else made.call.tool
    if made.call.unknown_tool:
        return f"it calls {called!r}, which is no tool that a model is shown"
    if made.answer is None or made.answer.status == "ok" or (made.answer.status == "tool_error" and may_refuse):
        return None
    why = made.answer.shown or made.answer.status
    return f"its call of {called!r} fails ({made.answer.status}): {_line(why)}"


def _line(text: str) -> str:
    """What a server or a grader said, in one line of some length."""
    return excerpt.beginning(" ".join(text.split()), _SHOWN)


class Rehearsal:
    """Plays tasks by one arm of its own, each in a clean environment."""

    def __init__(self, bench: Bench, arm: ArmBench, tools: Iterable[tuple[str, RawTool]] = ()) -> None:
        self.tasks = {task_id: _watched(task) for task_id, task in bench.tasks.items()}
        self._bench, self._arm = replace(bench, arms={}, places=replace(bench.places, kept=None)), arm
        tools = list(tools)
        self._schemas = {(server, str(tool["name"])): tool.get("inputSchema") for server, tool in tools}
        self._reading = {(server, str(tool["name"])) for server, tool in tools if read_only(tool)}
        self._writing = {(server, tool["name"]) for server, tool in tools if _hints(tool).get("readOnlyHint") is False}

    @property
    def shares_servers(self) -> bool:
        """Whether a server runs once for all that is played."""
        return any(getattr(server, "url", None) for server in self._arm.servers.values())

    def knowing(self, states: Mapping[str, Mapping[str, StateValue]]) -> "Rehearsal":
        """With what the references of some tasks leave."""
        known = copy(self)
        known.tasks = {
            task_id: replace(task, reference_state=states.get(task_id, task.reference_state))
            for task_id, task in self.tasks.items()
        }
        return known

    async def play_reference(self, task: Task) -> Played:
        """A task's own solution."""
        reference = task.reference
        replay = plugins.load("hosts", "mcptrials.hosts.replay:Replay")
        host = replay(reference.calls, reference.answer) if reference else replay()
        return await self.play(self.tasks[task.id], host, task)

    async def play_readers(self, tasks: Sequence[Task]) -> list[Played]:
        """The references of tasks of one world that only read, one after the other in one environment."""
        calls = [call for task in tasks for call in (task.reference.calls if task.reference else ())]
        replay = plugins.load("hosts", "mcptrials.hosts.replay:Replay")
        together = await self.play_together([self.tasks[task.id] for task in tasks], replay(calls))
        made, found = iter(together.transcript.calls), []
        for task in tasks:
            own = list(islice(made, len(task.reference.calls if task.reference else ())))
            transcript = Transcript(event for each in own for event in (each.call, each.answer) if event)
            found.append(Played(task, await self._graded(task, together.ended, transcript), transcript))
        return found

    async def _graded(self, task: Task, ended: Ended, transcript: Transcript) -> Ended:
        """What a reference comes to by its part of a longer play."""
        if ended.outcome is None or task.reference is None:
            return ended
        bench, answer = self.tasks[task.id], task.reference.answer
        state = {**ended.outcome.state, **bench.reference_state}
        change = {"answer": answer, "framing": "missing" if answer is None else "tagged", "state": state}
        outcome = ended.outcome.model_copy(update=change)
        given = GradeInput(bench.task, outcome, transcript, None, bench.environment.project_dir)
        grades = await grade_all(bench.graders, given)
        return Ended(outcome, grades, decide(outcome, grades, bench.task.combine))

    def may_only_read(self, task: Task) -> bool:
        """Whether all tools that a reference calls declare to change nothing, as far as they are known."""
        names = {tool for _, tool in self._reading} - {tool for _, tool in self._writing}
        return all(call.tool in names for call in (task.reference.calls if task.reference else ()))

    def is_reading(self, server: str, tool: str) -> bool:
        """Whether a tool declares to change nothing."""
        return (server, tool) in self._reading

    def optional_arguments(self, server: str, tool: str) -> list[str]:
        """The arguments that a tool can do without."""
        schema = self._schemas.get((server, tool))
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        required = schema.get("required") if isinstance(schema, Mapping) else None
        given = required if isinstance(required, list) else []
        return [name for name in properties if name not in given] if isinstance(properties, Mapping) else []

    def only_reads(self, played: Played) -> bool:
        """Whether all tools that it called declare to change nothing, and nothing on the disk has changed.

        A task whose grader looks at the trial's directory by itself needs one of its own, and counts as writing.
        """
        calls = [made.call for made in played.transcript.calls]
        looks = any(spec.type in SLOW for spec in played.task.graders)
        return not (looks or self.writes(played)) and all((each.server, each.tool) in self._reading for each in calls)

    async def play_together(self, alike: Sequence[TaskBench], host: Host) -> Played:
        """What a host does, whatever its task is, with all that the graders of some tasks of one world ask for."""
        queries = {query.key: query for bench in alike for query in bench.queries if query.of == "trial"}
        return await self.play(replace(alike[0], graders=(), queries=tuple(queries.values())), host)

    async def play(self, bench: TaskBench, host: Host, task: Task | None = None) -> Played:
        """One trial of a task, with a host that needs no model."""
        task, arm = task or bench.task, self._arm.arm.id
        idle = getattr(host, "calls", None) == () and not any(
            map(bench.environment.is_read_before_close, bench.queries)
        )
        own = replace(self._arm, host=host, servers={}) if idle else replace(self._arm, host=host)
        arms, tasks = {arm: own}, {task.id: bench}
        trial = Trial(task_id=task.id, arm=arm, number=1, seed=0, block=0)
        log = TrialLog(Unwritten())
        ended = await attempt(trial, replace(self._bench, arms=arms, tasks=tasks), log)
        return Played(task, ended, log.transcript)

    async def reference_state(self, task: Task) -> dict[str, StateValue]:
        """What a task's graders want to know of the state that its reference leaves.

        Raises:
            UsageError: the reference cannot be played.
        """
        played = await self.play_reference(task)
        if played.trouble or played.ended.outcome is None:
            what = f"its reference cannot be replayed: {played.trouble}"
            raise UsageError(what, where=f"task {task.id!r}", hint="mend the reference; `mcptrials check` plays it")
        state = played.ended.outcome.state
        return {query.key: state[query.text] for query in self.tasks[task.id].queries if query.of == "reference"}

    def worlds(self, benches: Iterable[TaskBench]) -> list[list[TaskBench]]:
        """Tasks by what they start from and which tools they show."""
        alike: dict[str, list[TaskBench]] = {}
        for bench in benches:
            alike.setdefault(f"{bench.environment_hash} {bench.filters[self._arm.arm.variant]}", []).append(bench)
        return list(alike.values())

    def writes(self, played: Played) -> bool:
        """Whether something on the disk has changed, or may have: a tool was called that declares it."""
        return _has_changed(played) or self.declares_writes(played)

    def landed(self, played: Played) -> set[tuple[str, str]]:
        """The tools whose writes are seen in the trial's own directory."""
        if not _has_changed(played):
            return set()
        done = [made.call for made in played.transcript.calls if made.answer and made.answer.status == "ok"]
        return {(call.server, call.tool) for call in done if call.server}

    def declares_writes(self, played: Played) -> bool:
        """Whether a tool that declares to write answered well."""
        done = [made.call for made in played.transcript.calls if made.answer and made.answer.status == "ok"]
        return any((call.server, call.tool) in self._writing for call in done)


def _has_changed(played: Played) -> bool:
    outcome = played.ended.outcome
    changes = outcome.state.get(CHANGES.key) if outcome else None
    return bool(changes and changes.value)


def _watched(bench: TaskBench) -> TaskBench:
    """What a task changes is looked at, whether its graders ask for it or not."""
    if bench.environment.pristine is None or CHANGES in bench.queries:
        return bench
    return replace(bench, queries=(*bench.queries, CHANGES))


def _hints(tool: RawTool) -> Mapping[str, Any]:
    hints = tool.get("annotations")
    return hints if isinstance(hints, Mapping) else {}
