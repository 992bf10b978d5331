"""run: from a project to a complete run folder."""

import gc
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio

from mcptrials.errors import McptrialsError, UsageError
from mcptrials.executors.local import LocalExecutor
from mcptrials.matrix import owed, plan
from mcptrials.project import Project
from mcptrials.project.secrets import refuse_in_names
from mcptrials.record import Record
from mcptrials.redaction import Redactor
from mcptrials.rollout import Bench, run_trial
from mcptrials.rollout.spares import Spares
from mcptrials.runner.building import Workshop
from mcptrials.runner.children import waiting_without_threads
from mcptrials.runner.descriptors import provide_descriptors
from mcptrials.runner.manifest import check_same, check_same_servers, make_manifest, with_servers
from mcptrials.runner.options import Listener, RunOptions, Silent
from mcptrials.runner.selection import (
    count_drafts,
    refuse_too_many,
    select_models,
    select_tasks,
    with_equal_trials,
)
from mcptrials.signals import ending_signals
from mcptrials.store import Run, RunWriter, find_run, log_look
from mcptrials.store.writer import new_run_id, refuse_run_folder
from mcptrials.trial import Trial

_YOUNG = 10_000
"""New objects before a walk for garbage; Python's 700 are made and gone many times in a trial."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as far as it came."""

    run: Run
    stopped: bool
    """Whether the user stopped it."""


def run(project: Project, options: RunOptions | None = None, listener: Listener | None = None) -> RunResult:
    """Runs a project's suite; the blocking form of `run_async`."""
    with waiting_without_threads():
        return anyio.run(run_async, project, options, listener)


async def run_async(project: Project, options: RunOptions | None = None, listener: Listener | None = None) -> RunResult:
    """Runs every owed trial of a project's suite.

    Raises:
        UsageError: before any spend, when something is wrong with the project, its servers or its models.
        IncompleteError: when the disk gives out; what was recorded is kept.
    """
    options, listener = options or RunOptions(), listener or Silent()
    redactor = Redactor(project.secrets)
    with _without_secrets(redactor):
        if options.resume:
            beginning = find_run(project.runs_dir, options.resume)
            return await _go_on(project, _as_begun(beginning, options), listener, beginning, redactor)
        name = options.name or new_run_id()
        refuse_in_names(project.secrets, [("name of the run", options.name or "")])
        refuse_run_folder(project.runs_dir, name)
        return await _begin(project, replace(options, name=name, split=options.split or "train"), listener, redactor)


@contextmanager
def _without_secrets(redactor: Redactor) -> Iterator[None]:
    """Errors quote what servers and providers said, which may be anything."""
    try:
        yield
    except McptrialsError as exc:
        exc.what = redactor.text(exc.what)
        exc.where, exc.hint = exc.where and redactor.text(exc.where), exc.hint and redactor.text(exc.hint)
        raise


async def _begin(project: Project, options: RunOptions, listener: Listener, redactor: Redactor) -> RunResult:
    async with _workshop(project, options, listener, redactor) as (workshop, manifest):
        trials = _plan(workshop, manifest)
        if drafts := count_drafts(project.suite, manifest["split"]):
            what = "draft task is" if drafts == 1 else "draft tasks are"
            listener.warn(f"{drafts} {what} left out; remove 'draft: true' from a task to run it")
        await workshop.check()
        await workshop.refuse_broken()
        await _confirm(workshop, manifest, (trials, trials), listener)
        frozen = with_servers(manifest, workshop.facts)
        with RunWriter.create(project.runs_dir, frozen, redactor, workshop.places.root) as writer:
            try:
                return await _run_trials(trials, workshop, (manifest, writer), listener)
            except UsageError:
                writer.discard_if_empty()
                raise


async def _go_on(
    project: Project, options: RunOptions, listener: Listener, beginning: Run, redactor: Redactor
) -> RunResult:
    """The lock comes first, so that nobody else records what is found to be owed."""
    async with _workshop(project, options, listener, redactor) as (workshop, manifest):
        check_same(beginning.manifest, manifest)
        with RunWriter(beginning.folder, redactor, workshop.places.root) as writer:
            if writer.left:
                listener.warn(f"trial directories that may be left of a killed run were not removed: {writer.left}")
            trials = _plan(workshop, manifest)
            rest = owed(trials, [*beginning.recorded(), *beginning.attempts()])  # grading again makes none owed
            if not rest:
                listener.notice(f"run {beginning.run_id} owes no trial")
                return RunResult(beginning, stopped=False)
            await workshop.check()
            check_same_servers(beginning.manifest, writer.as_written(with_servers(manifest, workshop.facts)))
            await _confirm(workshop, manifest, (trials, rest), listener)
            return await _run_trials(rest, workshop, (manifest, writer), listener)


@asynccontextmanager
async def _workshop(
    project: Project, options: RunOptions, listener: Listener, redactor: Redactor
) -> AsyncIterator[tuple[Workshop, dict[str, Any]]]:
    """The parts of the run, with everything in its manifest that can be known before they are tried."""
    project = replace(project, config=select_models(project.config, options.models))
    refuse_in_names(project.secrets, project.names())
    suite = select_tasks(project.suite, options.split or "train", options.only)
    suite = with_equal_trials(suite) if options.trials else suite
    refuse_too_many(suite, len(project.arms()), options.trials or project.config.trials)
    async with Workshop.open(project, suite, listener, redactor) as workshop:
        arms = tuple(each for each, _, _ in project.arms().values())
        yield workshop, make_manifest(project, suite, arms, workshop.environment_hashes(), options)


def _plan(workshop: Workshop, manifest: Mapping[str, Any]) -> tuple[Trial, ...]:
    arms = [arm["id"] for arm in manifest["arms"]]
    return plan(workshop.suite.tasks, arms, manifest["trials"], manifest["seed"])


async def _confirm(
    workshop: Workshop, manifest: Mapping[str, Any], trials: tuple[Sequence[Trial], Sequence[Trial]], listener: Listener
) -> None:
    """The last step before the run is on record: the user's yes, the models' first replies, the look that is logged.

    Args:
        trials: all, and those still owed.
    """
    if not listener.confirm(workshop.plan(manifest["run_id"], *trials)):
        raise UsageError("not confirmed: nothing was run", hint="use --yes to run without a question")
    await workshop.ask_models()
    if manifest["split"] == "held_out":
        log_look(workshop.project.dir, "run", manifest["run_id"])


def _as_begun(beginning: Run, options: RunOptions) -> RunOptions:
    """A continued run takes its selection from its manifest; what is asked for besides is compared with it later."""
    for flag, value in (("--name", options.name), ("--only", options.only)):
        if value is not None:
            raise UsageError(f"{flag} does not go with --resume: the run keeps its own", hint="leave it out")
    manifest = beginning.manifest
    return replace(
        options,
        name=beginning.run_id,
        split=options.split or manifest["split"],
        only=",".join(beginning.tasks),
        models=options.models or tuple(dict.fromkeys(arm.model for arm in beginning.arms.values())),
        trials=options.trials or manifest["trials_asked"],
    )


async def _run_trials(
    trials: Sequence[Trial], workshop: Workshop, begun: tuple[Mapping[str, Any], RunWriter], listener: Listener
) -> RunResult:
    bench, slots, writer = workshop.bench(*begun), workshop.slots(), begun[1]
    in_flight: set[str] = set()
    ahead = min(slots.total, bench.starts.size) if any(arm.ahead for arm in bench.arms.values()) else 0
    closing = slots.total if ahead else 0
    if warning := provide_descriptors(slots.total + ahead + closing):
        listener.warn(warning)

    async def one(trial: Trial, played: Callable[[], None]) -> Record:
        in_flight.add(trial.name)
        listener.started(trial)
        try:
            return await run_trial(trial, bench, spares, played)
        finally:
            in_flight.discard(trial.name)

    async def keep(record: Record) -> None:
        listener.recorded(await writer.append(record))

    async with anyio.create_task_group() as tasks:
        if threading.current_thread() is threading.main_thread():
            await tasks.start(_watch_signals, bench, listener, in_flight)
        try:
            async with Spares.open(trials, bench, slots=slots.total, ahead=ahead) as spares:
                with _settled():
                    await LocalExecutor(slots, bench.stop).run(trials, one, keep)
        except McptrialsError as exc:
            failure: McptrialsError | None = exc
        else:
            failure = None
        tasks.cancel_scope.cancel()
    if failure:
        raise failure
    return RunResult(Run.load(writer.folder), stopped=bench.stop.asked)


@contextmanager
def _settled() -> Iterator[None]:
    """What is loaded by now stays for the run: to walk it for garbage again and again costs 1 ms a trial."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_YOUNG, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _watch_signals(
    bench: Bench,
    listener: Listener,
    in_flight: set[str],
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """First Ctrl-C: no new trial, those in flight end. Second, TERM, or HUP: they are cancelled, and owed again."""
    with anyio.open_signal_receiver(signal.SIGINT, *ending_signals()) as signals:
        task_status.started()
        async for number in signals:
            now = bench.stop.asked or number != signal.SIGINT
            bench.stop.asked = True
            listener.stopping(len(in_flight), cancelled=now)
            if now:
                bench.stop.cancel()
