"""Spares: places made ahead with their servers started there, for the trials that come next.

Each is used by one trial at most. What a place holds depends on nothing but the environment of the trial's task, the
variant of its servers, and whether its host leaves the negotiation to us; a trial takes any place of its kind.
"""

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import islice

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from mcptrials.errors import HarnessError, TrialError, boundary
from mcptrials.protocols import OpenSession, Place, ServerChannel, ServerSession, SessionHooks, TakesSessions, WireLog
from mcptrials.rollout.bench import Bench
from mcptrials.servers.background import background, bare
from mcptrials.servers.spare import Spare, WaitingWires
from mcptrials.trial import Trial

MAX_UNUSABLE = 3
"""So many places of a kind in a row that no trial could use end the making of them: its trials start by themselves."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Trials of one kind can use each other's places."""

    variant: str
    environment: str
    connect_s: float
    negotiated: bool


class ReadyPlace:
    """A place made ahead. The task that runs `live` owns it until a trial takes it, and its servers for ever."""

    def __init__(self, trial: Trial, kind: Kind, bench: Bench) -> None:
        """Args:
        trial: one of its kind.
        """
        self._bench, self._task, self._arm, self._kind = bench, bench.tasks[trial.task_id], bench.arms[trial.arm], kind
        self.spares: dict[str, Spare] = {}
        self._wires, self._scope = WaitingWires(), anyio.CancelScope()
        self._place: Place | None = None
        self._state: str | None = None
        self._failure: TrialError | None = None
        self._ready, self._over = anyio.Event(), anyio.Event()
        self._taken = False

    async def live(self) -> None:
        """Makes the place, keeps its servers until they were used, and removes what no trial took."""
        try:
            with self._scope, boundary(HarnessError, "bug", "a place could not be made ahead"), bare():
                async with anyio.create_task_group() as tasks:
                    async with self._bench.starts.hold():
                        await self._make(tasks)
                    self._ready.set()
        except TrialError as failure:
            self._failure = failure
        finally:
            self._ready.set()
            self._over.set()
            if self._place and not self._taken:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(self._bench.places.remove, self._place)

    async def _make(self, tasks: TaskGroup) -> None:
        place = self._place = self._bench.places.make(self._wires.open)
        await self._task.make_clean(place)
        arm, kind = self._arm, self._kind
        negotiate = arm.open_session(kind.connect_s, place.trial_dir) if kind.negotiated else None
        self.spares = {name: Spare(arm.servers[name], negotiate) for name in arm.servers if name in arm.ahead}
        for spare in self.spares.values():
            await tasks.start(spare.live, place)
        # Servers may write when they start: that is a part of the state from which a trial begins.
        self._state = await self._task.environment.state_hash(place)

    async def usable(self) -> bool:
        """Whether it is as it was made. One that could not be made is: its trial hears why, as if it had made it."""
        await self._ready.wait()
        if self._failure:
            return self._place is not None
        if self._wires.flooded or any(spare.gone for spare in self.spares.values()):
            return False
        try:
            return await self._task.environment.state_hash(self.place) == self._state
        except HarnessError:
            return False

    def discard(self) -> None:
        self._scope.cancel()

    @property
    def place(self) -> Place:
        if self._place is None:
            raise HarnessError("bug", "a place that was never made is asked for")
        return self._place

    def take(self) -> None:
        """From here on its directory is the trial's."""
        self._taken = True

    @asynccontextmanager
    async def used(self, open_wire: Callable[[str], WireLog]) -> AsyncIterator[None]:
        """The time of its trial, to whose logs all that was said belongs. At the end no server is left.

        Raises:
            TrialError: why it could not be made.
        """
        try:
            self._wires.belong_to(open_wire)
            if self._failure:
                raise self._failure
            yield
        finally:
            self.discard()
            with anyio.CancelScope(shield=True):
                await self._over.wait()

    def sessions(self, anew: OpenSession) -> OpenSession:
        """Gives what was negotiated ahead, and negotiates `anew` with the servers that were not started ahead."""

        def opened(
            server: str, channel: ServerChannel, hooks: SessionHooks
        ) -> AbstractAsyncContextManager[ServerSession]:
            spare = self.spares.get(server)
            return spare.session(hooks, anew) if spare else anew(server, channel, hooks)

        return opened


class Spares:
    """Makes places for the next trials, in the background."""

    def __init__(self, trials: Iterable[Trial], bench: Bench, tasks: TaskGroup, sizes: tuple[int, int]) -> None:
        self._bench, self._tasks = bench, tasks
        self._slots, self._ahead = sizes
        self._pending = {trial.name: trial for trial in trials}
        self._ready: dict[Kind, deque[ReadyPlace]] = {}
        self._unusable = Counter[Kind]()
        self._taken = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, trials: Iterable[Trial], bench: Bench, *, slots: int, ahead: int) -> AsyncIterator["Spares"]:
        """Whatever is left at the end is ended.

        Args:
            slots: how many trials run at a time; the first ones need not wait for what would begin no sooner.
            ahead: for how many of the next trials there is a place.
        """
        async with background() as tasks:
            yield cls(trials, bench, tasks, (slots, ahead))

    async def take(self, trial: Trial) -> ReadyPlace | None:
        """A place for a trial that begins now, or None: it makes its own."""
        self._pending.pop(trial.name, None)
        self._taken += 1
        kind = self._kind(trial)
        waiting = self._ready.get(kind, deque()) if kind else deque[ReadyPlace]()
        while kind and waiting:
            with ExitStack() as undo:
                ready = waiting.popleft()
                undo.callback(ready.discard)
                self._refill()
                if await ready.usable():
                    undo.pop_all()
                    ready.take()
                    self._unusable[kind] = 0
                    return ready
                self._unusable[kind] += 1
        self._refill()
        return None

    def _kind(self, trial: Trial) -> Kind | None:
        task, arm = self._bench.tasks[trial.task_id], self._bench.arms[trial.arm]
        if not arm.ahead:
            return None
        negotiated = isinstance(arm.host, TakesSessions)
        return Kind(arm.arm.variant, task.environment_hash, task.limits.connect_seconds, negotiated)

    def _refill(self) -> None:
        """A place for each of the next trials, unless they begin at once or places of their kind prove of no use."""
        if self._bench.stop.asked or self._taken < self._slots:
            return
        wanted = Counter[Kind]()
        for trial in islice(self._pending.values(), self._ahead):
            kind = self._kind(trial)
            if kind is None or self._unusable[kind] >= MAX_UNUSABLE:
                continue
            wanted[kind] += 1
            waiting = self._ready.setdefault(kind, deque())
            if wanted[kind] > len(waiting):
                waiting.append(ReadyPlace(trial, kind, self._bench))
                self._tasks.start_soon(waiting[-1].live)
