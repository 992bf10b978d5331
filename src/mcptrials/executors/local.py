"""The local executor: trials side by side in one event loop."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from mcptrials.record import Record
from mcptrials.rollout.stop import Stop
from mcptrials.trial import Trial

RunTrial = Callable[[Trial, Callable[[], None]], Awaitable[Record]]
Keep = Callable[[Record], Awaitable[None]]
PERMANENT = ("auth", "quota")
PERMANENT_IN_A_ROW = 3
"""So many equal permanent refusals by a provider end its arms: the rest would fail the same way."""


@dataclass(frozen=True, slots=True)
class Slots:
    """How many trials may be in flight: in all, and by the model that they share."""

    total: int
    model_of: Mapping[str, str]
    """Arm id -> model."""
    by_model: Mapping[str, int]


@dataclass
class _Queue:
    """Hands out the first trial whose model has a free slot; order is kept otherwise."""

    pending: list[Trial]
    slots: Slots
    stop: Stop
    running: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    changed: anyio.Condition = field(default_factory=anyio.Condition)

    async def take(self) -> Trial | None:
        async with self.changed:
            while self.pending and not self.stop.asked:
                for index, trial in enumerate(self.pending):
                    model = self.slots.model_of[trial.arm]
                    if self.running[model] < self.slots.by_model.get(model, self.slots.total):
                        self.running[model] += 1
                        return self.pending.pop(index)
                await self.changed.wait()
            return None

    async def free(self, trial: Trial) -> None:
        """Another trial may have its slot."""
        async with self.changed:
            self.running[self.slots.model_of[trial.arm]] -= 1
            self.changed.notify_all()

    async def done(self, trial: Trial, record: Record) -> None:
        model = self.slots.model_of[trial.arm]
        async with self.changed:
            permanent = record.blame == "provider" and record.cause in PERMANENT
            self.refusals[model] = self.refusals[model] + 1 if permanent else 0
            if self.refusals[model] >= PERMANENT_IN_A_ROW:
                self.pending = [each for each in self.pending if self.slots.model_of[each.arm] != model]
            self.changed.notify_all()

    async def wake(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class LocalExecutor:
    """Runs trials concurrently. Each slot waits for the record of its trial before the last one is kept, at least."""

    def __init__(self, slots: Slots, stop: Stop) -> None:
        self._slots, self._stop = slots, stop

    async def run(self, trials: Sequence[Trial], run_trial: RunTrial, keep: Keep) -> None:
        """Runs all trials, or until the user or a permanent failure stops it.

        Args:
            run_trial: tells through its second argument when its slot is free, which may be before its end.

        Raises:
            IncompleteError: a record could not be kept.
        """
        work = _Work(_Queue(list(trials), self._slots, self._stop), run_trial, keep)
        async with anyio.create_task_group() as tasks:
            for _ in range(min(self._slots.total, len(trials))):
                tasks.start_soon(work.fill_slot, tasks)
        if work.failure is not None:
            raise work.failure


@dataclass
class _Work:
    """What the slots share."""

    queue: _Queue
    run_trial: RunTrial
    keep: Keep
    failure: Exception | None = None

    async def fill_slot(self, tasks: TaskGroup) -> None:
        """One trial after the other; of those that no longer need the slot, one at most is not over."""
        before = anyio.Event()
        before.set()
        while trial := await self.queue.take():
            played, over = anyio.Event(), anyio.Event()
            tasks.start_soon(self._run, trial, played, over)
            await played.wait()
            await self.queue.free(trial)
            await before.wait()
            before = over

    async def _run(self, trial: Trial, played: anyio.Event, over: anyio.Event) -> None:
        try:
            record = await self.run_trial(trial, played.set)
            with anyio.CancelScope(shield=True):
                await self.keep(record)
            await self.queue.done(trial, record)
        except Exception as exc:  # noqa: BLE001 - raised again below; the other trials are cancelled first
            self.failure = self.failure or exc
            self.queue.stop.cancel()
            await self.queue.wake()
        finally:
            played.set()
            over.set()
