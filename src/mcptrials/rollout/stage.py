"""Stage: the clean place of one trial, with the servers that are to be opened there or run there already."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass

import anyio
from anyio import to_thread

from mcptrials.environment import TrialPlaces
from mcptrials.protocols import OpenSession, Place, Server
from mcptrials.rollout.bench import Bench
from mcptrials.rollout.log import TrialLog
from mcptrials.rollout.spares import ReadyPlace, Spares
from mcptrials.rollout.starts import Emit
from mcptrials.trial import Trial


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a trial plays."""

    place: Place
    servers: Mapping[str, Server]
    open_session: OpenSession
    begin: Callable[[Emit], AbstractAsyncContextManager[Emit]]
    """Bounds how many trials start their servers at a time; see `Starts.begin`."""


@asynccontextmanager
async def stage(trial: Trial, bench: Bench, log: TrialLog, spares: Spares | None) -> AsyncIterator[Stage]:
    """The stage of a trial: one that was made ahead, or a new one. Its directory is gone at the end, unless kept.

    Raises:
        HarnessError: io, when there is no room for it; reset, when its state is not the pristine one.
    """
    task, arm = bench.tasks[trial.task_id], bench.arms[trial.arm]
    connect_s = task.limits.connect_seconds
    if ready := await spares.take(trial) if spares else None:
        async with _left(bench.places, ready.place, trial, log), ready.used(log.wire):
            yield _made_ahead(ready, arm.servers, arm.open_session(connect_s, ready.place.trial_dir))
        return
    place = bench.places.make(log.wire)
    async with _left(bench.places, place, trial, log):
        await task.make_clean(place)
        yield Stage(place, arm.servers, arm.open_session(connect_s, place.trial_dir), bench.starts.begin)


def _made_ahead(ready: ReadyPlace, servers: Mapping[str, Server], open_session: OpenSession) -> Stage:
    """Its start is over: nothing bounds it any more."""
    return Stage(ready.place, {**servers, **ready.spares}, ready.sessions(open_session), nullcontext)


@asynccontextmanager
async def _left(places: TrialPlaces, place: Place, trial: Trial, log: TrialLog) -> AsyncIterator[None]:
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            log.kept(await to_thread.run_sync(places.leave, place, trial.name))
