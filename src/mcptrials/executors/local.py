"""The local executor: trials side by side in one event loop."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from mcptrials.record import Record
from mcptrials.rollout.stop import Stop
from mcptrials.trial import Trial

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

    async def done(self, trial: Trial, record: Record) -> None:
        model = self.slots.model_of[trial.arm]
        async with self.changed:
            self.running[model] -= 1
            permanent = record.blame == "provider" and record.cause in PERMANENT
            self.refusals[model] = self.refusals[model] + 1 if permanent else 0
            if self.refusals[model] >= PERMANENT_IN_A_ROW:
                self.pending = [each for each in self.pending if self.slots.model_of[each.arm] != model]
            self.changed.notify_all()

    async def wake(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class LocalExecutor:
    """Runs trials concurrently; every record is kept before the next trial of its slot begins."""

    def __init__(self, slots: Slots, stop: Stop) -> None:
        self._slots, self._stop = slots, stop

    async def run(
        self,
        trials: Sequence[Trial],
        run_trial: Callable[[Trial], Awaitable[Record]],
        keep: Callable[[Record], Awaitable[None]],
    ) -> None:
        """Runs all trials, or until the user or a permanent failure stops it.

        Raises:
            IncompleteError: a record could not be kept.
        """
        queue = _Queue(list(trials), self._slots, self._stop)
        failure: Exception | None = None

        async def work() -> None:
            nonlocal failure
            while trial := await queue.take():
                try:
                    record = await run_trial(trial)
                    with anyio.CancelScope(shield=True):
                        await keep(record)
                except Exception as exc:  # noqa: BLE001 - raised again below; the other trials are cancelled first
                    failure = failure or exc
                    self._stop.cancel()
                    await queue.wake()
                    return
                await queue.done(trial, record)

        async with anyio.create_task_group() as tasks:
            for _ in range(min(self._slots.total, len(trials))):
                tasks.start_soon(work)
        if failure is not None:
            raise failure
