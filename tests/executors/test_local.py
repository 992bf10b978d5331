"""Trials side by side: their order, their slots, and every way in which the work ends early."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from mcptrials.errors import IncompleteError
from mcptrials.executors.local import LocalExecutor, RunTrial, Slots
from mcptrials.record import Record
from mcptrials.rollout.stop import Stop
from mcptrials.trial import Trial

pytestmark = pytest.mark.anyio
Played = Callable[[], None]


def trial(number: int, arm: str = "a") -> Trial:
    return Trial(task_id="t", arm=arm, number=number, seed=number, block=number)


def record(trial: Trial, **keys: Any) -> Record:
    return Record(
        task_id=trial.task_id,
        trial=trial.number,
        arm=trial.arm,
        model=trial.arm,
        agent_harness="loop-1",
        server_version=None,
        passed=keys.pop("passed", True),
        graders=(),
        tool_calls=0,
        tool_errors=0,
        protocol_errors=0,
        input_tokens=0,
        output_tokens=0,
        duration_ms=1,
        transcript="",
        **keys,
    )


@dataclass
class Work:
    """What happens, in order: `+` a trial begins, `-` it ends, `=` its record is kept."""

    story: list[str] = field(default_factory=list)
    running: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    async def run(self, trial: Trial, played: Played) -> Record:
        del played
        name = f"{trial.arm}{trial.number}"
        self.story.append(f"+{name}")
        for counted in (trial.arm, "all"):
            self.running[counted] = self.running.get(counted, 0) + 1
            self.most[counted] = max(self.most.get(counted, 0), self.running[counted])
        await anyio.sleep(0.01)
        for counted in (trial.arm, "all"):
            self.running[counted] -= 1
        self.story.append(f"-{name}")
        return record(trial)

    async def keep(self, record: Record) -> None:
        await anyio.lowlevel.checkpoint()
        self.story.append(f"={record.arm}{record.trial}")

    @property
    def begun(self) -> list[str]:
        return [step[1:] for step in self.story if step[0] == "+"]

    @property
    def kept(self) -> list[str]:
        return [step[1:] for step in self.story if step[0] == "="]


def slots(total: int, **by_model: int) -> Slots:
    """Each arm's model has the arm's name."""
    return Slots(total, {arm: arm for arm in "ab"}, by_model)


async def execute(
    trials: Sequence[Trial],
    slots: Slots,
    run: RunTrial,
    keep: Callable[[Record], Awaitable[None]],
    stop: Stop | None = None,
) -> None:
    with anyio.fail_after(10):
        await LocalExecutor(slots, stop or Stop()).run(trials, run, keep)


async def test_with_one_slot_trials_run_and_are_kept_in_order() -> None:
    work = Work()
    await execute([trial(number) for number in (1, 2, 3)], slots(1), work.run, work.keep)
    assert work.story == ["+a1", "-a1", "=a1", "+a2", "-a2", "=a2", "+a3", "-a3", "=a3"]


async def test_trials_begin_in_order_and_no_more_than_the_slots_at_a_time() -> None:
    work = Work()
    await execute([trial(number) for number in range(20)], slots(4), work.run, work.keep)
    assert work.begun == [f"a{number}" for number in range(20)]
    assert sorted(work.kept) == sorted(work.begun)
    assert work.most == {"a": 4, "all": 4}


async def test_a_model_with_few_slots_does_not_hold_up_the_others() -> None:
    work = Work()
    trials = [trial(number, arm) for number in (1, 2, 3) for arm in "ab"]
    await execute(trials, slots(4, a=1, b=3), work.run, work.keep)
    assert work.most["a"] == 1
    assert work.most["b"] == 3
    assert work.begun[:4] == ["a1", "b1", "b2", "b3"]
    assert [name for name in work.begun if name[0] == "a"] == ["a1", "a2", "a3"]


async def test_no_trials_are_no_work() -> None:
    work = Work()
    await execute([], slots(4), work.run, work.keep)
    assert work.story == []


async def test_after_the_wish_to_stop_no_trial_begins_and_those_in_flight_are_kept() -> None:
    work, stop = Work(), Stop()

    async def run(trial: Trial, played: Played) -> Record:
        del played
        stop.asked = trial.number >= 3
        return await work.run(trial, lambda: None)

    await execute([trial(number) for number in range(1, 20)], slots(2), run, work.keep, stop)
    assert 3 <= len(work.begun) <= 4
    assert sorted(work.kept) == sorted(work.begun)


async def test_a_cancelled_trial_ends_at_once_and_is_kept_as_what_it_is() -> None:
    work, stop = Work(), Stop()

    async def run(trial: Trial, played: Played) -> Record:
        del played
        with stop.cancellable() as scope:
            await (anyio.sleep_forever() if trial.number < 3 else work.run(trial, lambda: None))
        cancelled = {"verdict": "invalid", "cause": "cancelled", "passed": None}
        return record(trial, **(cancelled if scope.cancelled_caught else {}))

    async def keep(record: Record) -> None:
        work.story.append(f"={record.trial} {record.cause}")
        if record.trial == 3:
            stop.cancel()

    await execute([trial(number) for number in range(1, 20)], slots(3), run, keep, stop)
    assert sorted(work.story) == ["+a3", "-a3", "=1 cancelled", "=2 cancelled", "=3 None"]


async def test_a_record_that_cannot_be_kept_ends_the_run_with_its_own_error() -> None:
    work, stop = Work(), Stop()

    async def run(trial: Trial, played: Played) -> Record:
        del played
        with stop.cancellable():
            return await work.run(trial, lambda: None)
        return record(trial, verdict="invalid", cause="cancelled", passed=None)

    async def keep(record: Record) -> None:
        if record.trial == 2:
            raise IncompleteError("no space left on device")
        await work.keep(record)

    with pytest.raises(IncompleteError, match="no space left"):
        await execute([trial(number) for number in range(1, 20)], slots(2), run, keep, stop)
    assert stop.asked
    assert len(work.begun) <= 4


async def test_a_record_on_its_way_is_kept_though_the_run_is_cancelled_from_outside() -> None:
    kept: list[int] = []

    async def run(trial: Trial, played: Played) -> Record:
        del played
        return record(trial)

    with anyio.fail_after(10), anyio.CancelScope() as scope:

        async def keep(record: Record) -> None:
            scope.cancel()
            await anyio.sleep(0.01)
            kept.append(record.trial)

        await LocalExecutor(slots(1), Stop()).run([trial(1), trial(2)], run, keep)
    assert kept == [1]


def refusing(cause: str, *, unless: Sequence[int] = ()) -> RunTrial:
    """Trials of arm `a` are refused by their provider; those of arm `b` are not."""

    async def run(trial: Trial, played: Played) -> Record:
        del played
        await anyio.lowlevel.checkpoint()
        if trial.arm == "b" or trial.number in unless:
            return record(trial)
        return record(trial, verdict="invalid", blame="provider", cause=cause, passed=None)

    return run


@pytest.mark.parametrize("cause", ["auth", "quota"])
async def test_permanent_refusals_in_a_row_end_the_arm_and_no_other(cause: str) -> None:
    work = Work()
    trials = [trial(number, arm) for number in range(1, 11) for arm in "ab"]
    await execute(trials, slots(1), refusing(cause), work.keep)
    assert [name for name in work.kept if name[0] == "a"] == ["a1", "a2", "a3"]
    assert [name for name in work.kept if name[0] == "b"] == [f"b{number}" for number in range(1, 11)]


async def test_refusals_with_an_answer_in_between_do_not_end_an_arm() -> None:
    work = Work()
    trials = [trial(number) for number in range(1, 10)]
    await execute(trials, slots(1), refusing("auth", unless=(3, 6, 9)), work.keep)
    assert len(work.kept) == 9


async def test_failures_that_may_pass_do_not_end_an_arm() -> None:
    for cause in ("rate_limit", "http", "connection"):
        work = Work()
        await execute([trial(number) for number in range(10)], slots(1), refusing(cause), work.keep)
        assert len(work.kept) == 10


async def test_a_slot_that_is_free_before_its_trial_is_over_is_filled_and_waits_for_the_end_only_once() -> None:
    story: list[str] = []
    ends = {number: anyio.Event() for number in (1, 2, 3)}

    async def run(trial: Trial, played: Played) -> Record:
        story.append(f"+{trial.number}")
        played()
        await ends[trial.number].wait()
        return record(trial)

    async def keep(record: Record) -> None:
        story.append(f"={record.trial}")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(LocalExecutor(slots(1), Stop()).run, [trial(1), trial(2), trial(3)], run, keep)
            await anyio.wait_all_tasks_blocked()
            assert story == ["+1", "+2"]
            ends[1].set()
            await anyio.wait_all_tasks_blocked()
            assert story == ["+1", "+2", "=1", "+3"]
            for end in ends.values():
                end.set()
    assert story[-2:] == ["=2", "=3"]
