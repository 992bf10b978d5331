"""Rehearsal: a task played without a model, by its reference or a stand-in, as a trial that nobody records."""

from dataclasses import dataclass, replace
from typing import NoReturn

from mcptrials import plugins
from mcptrials.errors import UsageError
from mcptrials.events import Event
from mcptrials.protocols import Endpoint, Host
from mcptrials.rollout import ArmBench, Bench, Ended, TrialLog, attempt
from mcptrials.runner.preflight import NoWire
from mcptrials.task import Task
from mcptrials.transcript import CallMade, Transcript
from mcptrials.trial import StateValue, Trial

_MAY_REFUSE = ("not_found", "refuse")
"""What is expected of tasks whose reference may be answered with a tool's error."""


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
            return self.ended.error
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
        return f"grader {first.name!r} {'cannot decide' if first.value is None else 'says'} {said}"


def _wrong(made: CallMade, *, may_refuse: bool) -> str | None:
    called = f"{made.call.server}/{made.call.tool}" if made.call.server else made.call.tool
    if made.call.unknown_tool:
        return f"it calls {called!r}, which is no tool that a model is shown"
    if made.answer is None or made.answer.status == "ok" or (made.answer.status == "tool_error" and may_refuse):
        return None
    why = made.answer.shown or made.answer.status
    return f"its call of {called!r} fails ({made.answer.status}): {why}"


class Rehearsal:
    """Plays tasks by one arm of its own, each in a clean environment."""

    def __init__(self, bench: Bench, arm: ArmBench) -> None:
        self._bench = replace(bench, arms={arm.arm.id: arm})
        self._arm = arm

    async def play(self, task: Task, host: Host) -> Played:
        """One trial of a task, with a host that needs no model."""
        arm = self._arm.arm.id
        bench = replace(self._bench, arms={arm: replace(self._arm, host=host)})
        trial = Trial(task_id=task.id, arm=arm, number=1, seed=0, block=0)
        log = TrialLog(bench.writer.open_trial(trial))
        ended = await attempt(trial, bench, log)
        return Played(task, ended, log.transcript)

    async def play_reference(self, task: Task) -> Played:
        """A task's own solution."""
        reference = task.reference
        replay = plugins.load("hosts", "mcptrials.hosts.replay:Replay")
        host = replay(reference.calls, reference.answer) if reference else replay()
        return await self.play(task, host)

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
        wanted = [query for query in self._bench.tasks[task.id].queries if query.of == "reference"]
        return {query.key: state[query.text] for query in wanted}
