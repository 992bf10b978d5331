"""run_trial: open, run, read, close, read, grade, record."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from mcptrials import answer
from mcptrials.environment import LiveServers
from mcptrials.environment.remains import inode
from mcptrials.errors import HarnessError, ServerError, TrialError, boundary
from mcptrials.events import FinalAnswer, ServerExited
from mcptrials.grading import grade_all
from mcptrials.models.patient import Patient
from mcptrials.protocols import GradeInput, HostContext, HostResult, Place, ServerChannel
from mcptrials.record import Record
from mcptrials.rollout.bench import ArmBench, Bench, TaskBench
from mcptrials.rollout.live import StillRunning
from mcptrials.rollout.log import TrialLog
from mcptrials.rollout.recording import Ended, make_record
from mcptrials.rollout.spares import Spares
from mcptrials.rollout.stage import Stage, stage
from mcptrials.trial import SERVER_STOPS, Decision, Grade, Outcome, StateValue, Trial, decide

_NOT_REPLAYED = StateValue(error="the reference was not replayed")


def _nobody() -> None:
    pass


async def run_trial(
    trial: Trial, bench: Bench, spares: Spares | None = None, played: Callable[[], None] = _nobody
) -> Record:
    """One attempt at a task by an arm. Whatever happens in it becomes a record, with its blame and cause.

    Args:
        spares: places made ahead, if any are.
        played: hears when all that is left is to close servers that others need not wait for, and to judge.

    Raises:
        IncompleteError: the record could not be kept; the run stops.
    """
    log = TrialLog(bench.writer.open_trial(trial))
    return make_record(trial, bench, log, await attempt(trial, bench, log, spares, played))


async def attempt(
    trial: Trial, bench: Bench, log: TrialLog, spares: Spares | None = None, played: Callable[[], None] = _nobody
) -> Ended:
    """What came of a trial, whose events stand in its log; see `run_trial`."""
    task = bench.tasks[trial.task_id]
    ended = Ended(None, [], Decision("invalid", "none", "cancelled"))
    try:
        with bench.stop.cancellable(), boundary(HarnessError, "bug", "the harness failed"):
            async with stage(trial, bench, log, spares) as here:
                outcome = await _play(trial, bench, log, here, played)
                outcome = _with_state(outcome, await _read_state(task, log, here.place))
                grades = await grade_all(task.graders, _given(task, outcome, log, here.place))
            ended = Ended(outcome, grades, _decide(task, outcome, grades, log))
    except TrialError as failure:
        log.failed(failure)
        ended = Ended(None, [], Decision("invalid", failure.blame, failure.cause), failure.message)
    finally:
        log.close()
    return ended


async def _play(trial: Trial, bench: Bench, log: TrialLog, here: Stage, played: Callable[[], None]) -> Outcome:
    """The host's run between the opening and the closing of the servers, and the state that is gone with them."""
    task, arm = bench.tasks[trial.task_id], bench.arms[trial.arm]
    model = Patient(arm.model, arm.pause, log.clock, log.emit, bench.redactor.find)
    channels: dict[str, ServerChannel] = {}
    result = HostResult(None, "limit:time")
    try:
        async with here.begin(log.emit) as emit, AsyncExitStack() as stack:
            context = HostContext(
                trial=trial.key,
                emit=emit,
                limits=task.limits,
                clock=log.clock,
                place=here.place,
                open_session=here.open_session,
                filters=task.filters[arm.arm.variant],
                settings=arm.settings,
                dialect=arm.dialect,
                overrides=arm.overrides,
            )
            for name, server in here.servers.items():
                channels[name] = await stack.enter_async_context(server.open(here.place))
            with log.clock.limit(task.limits.trial_seconds) as limit:
                result = await _run_host(arm, task, model, channels, context, log)
            if limit.cancelled_caught and not log.transcript.prompted:
                raise ServerError("server_start", "the servers were not ready within the trial's time limit")
            log.host_ended(task.limits.trial_seconds if limit.cancelled_caught else None)
            outcome = _conclude(result, log)
            servers = StillRunning(channels, arm, context.open_session, log)
            outcome = _with_state(outcome, await _read_state(task, log, here.place, servers))
            if arm.ahead:
                played()
    finally:
        _note_exits(channels, log)
    return outcome


async def _run_host(
    arm: ArmBench,
    task: TaskBench,
    model: Patient,
    channels: Mapping[str, ServerChannel],
    context: HostContext,
    log: TrialLog,
) -> HostResult:
    """A server's fault in mid-trial ends the trial, but not the recording of it."""
    try:
        return await arm.host.run(task.task.prompt, model, channels, context)
    except ServerError as failure:
        if failure.cause not in SERVER_STOPS:
            raise
        log.failed(failure)
        return HostResult(None, failure.cause)


def _note_exits(channels: Mapping[str, ServerChannel], log: TrialLog) -> None:
    for name, channel in channels.items():
        if ended := channel.exited():
            log.emit(
                ServerExited(
                    at_ms=log.clock.now_ms(),
                    ms=ended.ms,
                    server=name,
                    exit_code=ended.exit_code,
                    how=ended.how,
                    stderr_bytes=ended.stderr_bytes,
                    stderr_tail=ended.stderr_tail,
                    left_processes=ended.left_processes,
                    limit=ended.limit,
                )
            )


def _conclude(result: HostResult, log: TrialLog) -> Outcome:
    found, framing = answer.extract(result.message)
    log.emit(FinalAnswer(at_ms=log.clock.now_ms(), answer=found, framing=framing))
    return Outcome(answer=found, framing=framing, stop=result.stop)


async def _read_state(
    task: TaskBench, log: TrialLog, place: Place, servers: LiveServers | None = None
) -> dict[str, StateValue]:
    """What graders ask for of the state behind the servers: while they still run, if given, or after their end."""
    state = {}
    for query in task.queries:
        if query.of == "reference":
            state[query.key] = task.reference_state.get(query.key, _NOT_REPLAYED)
        elif task.environment.is_read_before_close(query) == (servers is not None):
            began_ms = log.clock.now_ms()
            state[query.key] = await task.environment.read(query, place, servers)
            log.state_read(query.key, state[query.key], began_ms)
    return state


def _with_state(outcome: Outcome, state: Mapping[str, StateValue]) -> Outcome:
    return outcome.model_copy(update={"state": {**outcome.state, **state}})


def _given(task: TaskBench, outcome: Outcome, log: TrialLog, place: Place) -> GradeInput:
    """What the trial left, before its directory is gone."""
    left = place.trial_dir if place.inode in (None, inode(place.trial_dir)) else None
    return GradeInput(task.task, outcome, log.transcript, left, place.project_dir, place.trial_dir.parent)


def _decide(task: TaskBench, outcome: Outcome, grades: Sequence[Grade], log: TrialLog) -> Decision:
    calls = [made.answer for made in log.transcript.calls if made.answer]
    model_time_s = log.model_time_s
    decision = decide(
        outcome,
        grades,
        task.task.combine,
        last_call_timed_out=bool(calls) and calls[-1].status == "timeout",
        tool_time_share=log.tool_time_s / task.limits.trial_seconds,
        model_time_share=1.0 if model_time_s is None else model_time_s / task.limits.trial_seconds,
    )
    met = next((ended.limit for ended in log.transcript.exits if ended.limit), None)
    return replace(decision, cause=f"limit:{met}") if met and decision.cause == "crash" else decision
