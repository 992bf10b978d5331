"""The plan is balanced whatever its size, and after any interruption exactly the rest of it is owed."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.matrix import first_scored, owed, plan, trial_seed
from mcptrials.record import Record
from mcptrials.task import Task
from mcptrials.trial import Trial

COUNTS = st.lists(st.none() | st.integers(1, 4), min_size=1, max_size=4)


def tasks(counts: list[int | None]) -> list[Task]:
    grader = {"type": "exact_answer", "settings": {"expected": "x"}}
    return [
        Task.model_validate({"id": f"t{i}", "prompt": "p", "graders": [grader], "trials": count})
        for i, count in enumerate(counts)
    ]


def record(trial: Trial, verdict: Any, attempt: int = 1) -> Record:
    return Record(
        task_id=trial.task_id,
        trial=trial.number,
        arm=trial.arm,
        attempt=attempt,
        verdict=verdict,
        passed={"passed": True, "failed": False}.get(verdict),
        model="m",
        agent_harness="loop-1",
        server_version=None,
        graders=(),
        tool_calls=0,
        tool_errors=0,
        protocol_errors=0,
        input_tokens=None,
        output_tokens=None,
        duration_ms=None,
        transcript="t.jsonl",
    )


@settings(deadline=None, max_examples=50)
@given(counts=COUNTS, arms=st.integers(1, 4), trials=st.integers(1, 4), seed=st.integers(0, 2**40))
def test_each_block_holds_each_task_by_each_arm_once(
    counts: list[int | None], arms: int, trials: int, seed: int
) -> None:
    names = [f"arm{i}" for i in range(arms)]
    planned = plan(tasks(counts), names, trials, seed)
    for block in {trial.block for trial in planned}:
        due = {(f"t{i}", arm) for i, count in enumerate(counts) if block <= (count or trials) for arm in names}
        inside = [(trial.task_id, trial.arm) for trial in planned if trial.block == block]
        assert sorted(inside) == sorted(due)
    assert [trial.block for trial in planned] == sorted(trial.block for trial in planned)
    assert all(trial.number == trial.block and trial.attempt == 1 for trial in planned)
    for i, count in enumerate(counts):
        assert sum(trial.task_id == f"t{i}" for trial in planned) == arms * (count or trials)


@settings(deadline=None, max_examples=30)
@given(counts=COUNTS, arms=st.integers(1, 4), trials=st.integers(1, 4), cut=st.integers(0, 100))
def test_no_arm_ever_leads_by_more_than_one_block(counts: list[int | None], arms: int, trials: int, cut: int) -> None:
    names = [f"arm{i}" for i in range(arms)]
    begun = Counter(dict.fromkeys(names, 0))
    begun.update(trial.arm for trial in plan(tasks(counts), names, trials, 1)[:cut])
    assert max(begun.values()) - min(begun.values()) <= len(counts)


def test_the_plan_depends_on_nothing_but_its_inputs() -> None:
    made = plan(tasks([None] * 6), ["a", "b"], 3, seed=5)
    assert made == plan(tasks([None] * 6), ["a", "b"], 3, seed=5)
    assert made != plan(tasks([None] * 6), ["a", "b"], 3, seed=6)
    assert [trial.task_id for trial in made[:12]] != [trial.task_id for trial in made[12:24]]
    assert plan([], ["a"], 3, seed=5) == ()


def test_seeds_are_small_distinct_and_the_same_for_ever() -> None:
    seeds = {
        trial_seed(seed, f"t{i}", arm, n) for seed in (0, 1) for i in range(20) for arm in "ab" for n in range(1, 6)
    }
    assert len(seeds) == 2 * 20 * 2 * 5
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert trial_seed(0, "issues-017", "0a1b2c3d", 1) == 374850132


VERDICTS = st.sampled_from(["passed", "failed", "invalid", "pending"])


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_after_any_records_exactly_the_trials_without_a_settled_one_are_owed(data: st.DataObject) -> None:
    planned = plan(tasks([None, 2, None]), ["a", "b"], 2, seed=1)
    histories = {trial.name: data.draw(st.lists(VERDICTS, max_size=3)) for trial in planned}
    records = [
        record(trial, verdict, attempt) for trial in planned for attempt, verdict in enumerate(histories[trial.name], 1)
    ]
    rest = owed(planned, data.draw(st.permutations(records)))
    assert [trial.model_copy(update={"attempt": 1}) for trial in rest] == [
        trial for trial in planned if set(histories[trial.name]) <= {"invalid"}
    ]
    for trial in rest:
        assert trial.attempt == len(histories[trial.model_copy(update={"attempt": 1}).name]) + 1


def test_of_several_records_the_first_that_is_settled_counts_and_else_the_last() -> None:
    one, two, three, four = plan(tasks([None] * 2), ["a"], 2, seed=1)
    records = [
        record(one, "invalid"),
        record(two, "invalid"),
        record(one, "failed", 2),
        record(one, "passed", 3),
        record(two, "invalid", 2),
        record(three, "pending"),
        record(three, "passed", 2),
    ]
    chosen = {(each.task_id, each.trial): (each.verdict, each.attempt) for each in first_scored(records)}
    assert chosen == {
        (one.task_id, one.number): ("failed", 2),
        (two.task_id, two.number): ("invalid", 2),
        (three.task_id, three.number): ("pending", 1),
    }
    assert (four.task_id, four.number) not in chosen


@pytest.mark.parametrize("verdict", ["passed", "failed", "pending"])
def test_a_record_of_another_run_or_trial_settles_nothing(verdict: str) -> None:
    (trial,) = plan(tasks([None]), ["a"], 1, seed=1)
    stranger = trial.model_copy(update={"arm": "other"})
    assert owed([trial], [record(stranger, verdict)]) == (trial,)
