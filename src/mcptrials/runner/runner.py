"""run: from a project to a complete run folder."""

import signal
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import anyio

from mcptrials.errors import McptrialsError, UsageError
from mcptrials.executors.local import LocalExecutor, Slots
from mcptrials.matrix import owed, plan
from mcptrials.project import Project
from mcptrials.record import Record
from mcptrials.redaction import Redactor
from mcptrials.rollout import Bench, run_trial
from mcptrials.runner.building import Workshop
from mcptrials.runner.manifest import check_same, make_manifest, with_servers
from mcptrials.runner.options import Listener, RunOptions, Silent
from mcptrials.runner.selection import select_models, select_tasks
from mcptrials.store import Run, RunWriter, find_run, log_look
from mcptrials.store.writer import new_run_id
from mcptrials.trial import Trial


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as far as it came."""

    run: Run
    stopped: bool
    """Whether the user stopped it."""


def run(project: Project, options: RunOptions | None = None, listener: Listener | None = None) -> RunResult:
    """Runs a project's suite; the blocking form of `run_async`."""
    return anyio.run(run_async, project, options, listener)


async def run_async(project: Project, options: RunOptions | None = None, listener: Listener | None = None) -> RunResult:
    """Runs every owed trial of a project's suite.

    Raises:
        UsageError: before any spend, when something is wrong with the project, its servers or its models.
        IncompleteError: when the disk gives out; what was recorded is kept.
    """
    options, listener = options or RunOptions(), listener or Silent()
    beginning = find_run(project.runs_dir, options.resume) if options.resume else None
    if beginning:
        options = _as_begun(beginning, options)
    changes: dict[str, Any] = {"trials": options.trials} if options.trials else {}
    config = select_models(project.config.model_copy(update=changes), options.models)
    project = replace(project, config=config)
    suite = select_tasks(project.suite, options.split, options.only)
    run_id = beginning.run_id if beginning else _checked_name(options.name) or new_run_id()
    async with AsyncExitStack() as stack:
        workshop = await stack.enter_async_context(Workshop.open(project, suite, listener))
        arms = tuple(each for each, _, _ in project.arms().values())
        manifest = make_manifest(project, suite, arms, workshop.environment_hashes(), replace(options, name=run_id))
        if beginning:
            check_same(beginning.manifest, manifest)
        trials = plan(suite.tasks, [arm.id for arm in arms], config.trials, config.seed)
        rest = owed(trials, beginning.attempts() if beginning else ())
        await workshop.check()
        if not listener.confirm(workshop.plan(run_id, arms, trials, rest)):
            raise UsageError("not confirmed: nothing was run", hint="use --yes to run without a question")
        writer = _writer(project, run_id, beginning, with_servers(manifest, workshop.facts), workshop)
        stack.callback(writer.close)
        if options.split == "held_out":
            log_look(project.dir, "run", run_id)
        bench = workshop.bench(run_id, options.split, writer)
        await _run_trials(rest, bench, workshop.slots(), listener)
    return RunResult(Run.load(writer.folder), stopped=bench.stop.asked)


def _as_begun(beginning: Run, options: RunOptions) -> RunOptions:
    """A continued run takes its selection from its manifest."""
    manifest = beginning.manifest
    ids = ",".join(beginning.tasks)
    models = tuple(dict.fromkeys(arm.model for arm in beginning.arms.values()))
    return replace(
        options, split=manifest["split"], only=ids, models=options.models or models, trials=manifest["trials"]
    )


def _checked_name(name: str | None) -> str | None:
    if name is not None and (not name or not all(char.isalnum() or char in "._-" for char in name) or name[0] == "."):
        raise UsageError(f"--name {name!r} is no file name", hint="use letters, digits, '.', '_' and '-'")
    return name


def _writer(
    project: Project, run_id: str, beginning: Run | None, manifest: Mapping[str, Any], workshop: Workshop
) -> RunWriter:
    redactor, root = Redactor(project.secrets), workshop.places.root
    if beginning:
        return RunWriter(beginning.folder, redactor, root)
    return RunWriter.create(project.runs_dir, run_id, manifest, redactor, root)


async def _run_trials(trials: tuple[Trial, ...], bench: Bench, slots: Slots, listener: Listener) -> None:
    in_flight: set[str] = set()

    async def one(trial: Trial) -> Record:
        in_flight.add(trial.name)
        listener.started(trial)
        try:
            return await run_trial(trial, bench)
        finally:
            in_flight.discard(trial.name)

    async def keep(record: Record) -> None:
        await bench.writer.append(record)
        listener.recorded(record)

    async with anyio.create_task_group() as tasks:
        if threading.current_thread() is threading.main_thread():
            await tasks.start(_watch_signals, bench, listener, in_flight)
        try:
            await LocalExecutor(slots, bench.stop).run(trials, one, keep)
        except McptrialsError as exc:
            failure: McptrialsError | None = exc
        else:
            failure = None
        tasks.cancel_scope.cancel()
    if failure:
        raise failure


async def _watch_signals(
    bench: Bench,
    listener: Listener,
    in_flight: set[str],
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """First Ctrl-C: no new trial, those in flight end. Second, or TERM: they are cancelled, and owed again."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            now = bench.stop.asked or number == signal.SIGTERM
            bench.stop.asked = True
            listener.stopping(len(in_flight), cancelled=now)
            if now:
                bench.stop.cancel()
