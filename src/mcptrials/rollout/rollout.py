"""run_trial: open, run, read, close, read, grade, record."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

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
from mcptrials.trial import SERVER_STOPS, Decision, Grade, Outcome, StateValue, Trial, decide


async def run_trial(trial: Trial, bench: Bench) -> Record:
    """One attempt at a task by an arm. Whatever happens in it becomes a record, with its blame and cause.

    Raises:
        IncompleteError: the record could not be kept; the run stops.
    """
    task = bench.tasks[trial.task_id]
    log = TrialLog(trial, bench)
    ended = Ended(None, [], Decision("invalid", "none", "cancelled"))
    try:
        with bench.stop.cancellable(), boundary(HarnessError, "bug", "the harness failed"):
            async with bench.place(trial.name, log.wire, log.kept) as place:
                await _make_clean(task, place)
                outcome = await _play(trial, bench, log, place)
                outcome = _with_state(outcome, await _read_state(task, log, place))
                grades = await grade_all(task.graders, _given(task, outcome, log, place))
            ended = Ended(outcome, grades, _decide(task, outcome, grades, log))
    except TrialError as failure:
        log.failed(failure)
        ended = Ended(None, [], Decision("invalid", failure.blame, failure.cause), failure.message)
    finally:
        log.close()
    return make_record(trial, bench, log, ended)


async def _make_clean(task: TaskBench, place: Place) -> None:
    await task.environment.prepare(place)
    if await task.environment.state_hash(place) != task.pristine_hash:
        raise HarnessError("reset", "after the reset the state is not the pristine one: its hash differs")


async def _play(trial: Trial, bench: Bench, log: TrialLog, place: Place) -> Outcome:
    """The host's run between the opening and the closing of the servers, and the state that is gone with them."""
    task, arm = bench.tasks[trial.task_id], bench.arms[trial.arm]
    model = Patient(arm.model, arm.pause, log.clock, log.emit, bench.redactor.find)
    channels: dict[str, ServerChannel] = {}
    result = HostResult(None, "limit:time")
    try:
        async with bench.starts.begin(log.emit) as emit, AsyncExitStack() as stack:
            context = HostContext(
                trial=trial.key,
                emit=emit,
                limits=task.limits,
                clock=log.clock,
                place=place,
                open_session=arm.open_session(task.limits.connect_seconds),
                filters=task.filters[arm.arm.variant],
                settings=arm.settings,
                dialect=arm.dialect,
            )
            for name, server in arm.servers.items():
                channels[name] = await stack.enter_async_context(server.open(place))
            with log.clock.limit(task.limits.trial_seconds) as limit:
                result = await _run_host(arm, task, model, channels, context, log)
            if limit.cancelled_caught and not log.transcript.prompted:
                raise ServerError("server_start", "the servers were not ready within the trial's time limit")
            log.host_ended(task.limits.trial_seconds if limit.cancelled_caught else None)
            outcome = _conclude(result, log)
            servers = StillRunning(channels, arm, context.open_session, log)
            outcome = _with_state(outcome, await _read_state(task, log, place, servers))
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
    queries = {query.text: query for _, grader in task.graders for query in grader.needs(task.task)}
    state = {}
    for text, query in queries.items():
        if task.environment.is_read_before_close(query) == (servers is not None):
            began_ms = log.clock.now_ms()
            state[text] = await task.environment.read(query, place, servers)
            log.state_read(text, state[text], began_ms)
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
    return decide(
        outcome,
        grades,
        task.task.combine,
        last_call_timed_out=bool(calls) and calls[-1].status == "timeout",
        tool_time_share=log.tool_time_s / task.limits.trial_seconds,
        model_time_share=1.0 if model_time_s is None else model_time_s / task.limits.trial_seconds,
    )
