"""Matrix: suite x arms x trials as an ordered plan in balanced blocks, and what of it is still owed."""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence

from mcptrials.record import Record
from mcptrials.task import Task
from mcptrials.trial import Trial


def trial_seed(seed: int, task_id: str, arm: str, number: int) -> int:
    """A seed in [0, 2^31) from the run's seed and the trial's identity."""
    digest = hashlib.sha256(f"{seed}\0{task_id}\0{arm}\0{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def plan(tasks: Sequence[Task], arms: Sequence[str], trials: int, seed: int) -> tuple[Trial, ...]:
    """Every trial in the order in which it is started.

    Block r holds trial number r of every task by every arm, shuffled by the seed: no arm leads by more than one block,
    and neither tasks nor arms stand in a fixed order, so that drift in time falls on all alike.
    """
    rounds = max([task.trials or trials for task in tasks], default=0)
    ordered: list[Trial] = []
    for number in range(1, rounds + 1):
        block = [
            Trial(task_id=task.id, arm=arm, number=number, seed=trial_seed(seed, task.id, arm, number), block=number)
            for task in tasks
            if number <= (task.trials or trials)
            for arm in arms
        ]
        random.Random(f"{seed} block {number}").shuffle(block)
        ordered += block
    return tuple(ordered)


def owed(trials: Iterable[Trial], records: Iterable[Record]) -> tuple[Trial, ...]:
    """The trials without a scored or pending record, each with its next attempt number."""
    settled: set[tuple[str, str, int]] = set()
    attempts: dict[tuple[str, str, int], int] = {}
    for record in records:
        key = (record.task_id, record.arm, record.trial)
        attempts[key] = max(attempts.get(key, 0), record.attempt)
        if record.verdict != "invalid":
            settled.add(key)
    return tuple(_next(trial, attempts) for trial in trials if (trial.task_id, trial.arm, trial.number) not in settled)


def _next(trial: Trial, attempts: Mapping[tuple[str, str, int], int]) -> Trial:
    done = attempts.get((trial.task_id, trial.arm, trial.number), 0)
    return trial.model_copy(update={"attempt": done + 1})


def first_scored(records: Iterable[Record]) -> tuple[Record, ...]:
    """One record per trial: the first that is scored or pending, else the last attempt."""
    chosen: dict[tuple[str, str, int], Record] = {}
    for record in records:
        key = (record.task_id, record.arm, record.trial)
        if key not in chosen or chosen[key].verdict == "invalid":
            chosen[key] = record
    return tuple(chosen.values())
