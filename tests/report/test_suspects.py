"""What looks like a fault of a task, a grader or the run stands ahead of its numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest
from tests.hand_made import BASE, NEW, manifest, record, run_of, task

from mcptrials.record import Record
from mcptrials.report import summarise
from mcptrials.report.copies import copied_beyond_chance
from mcptrials.task import Task

ANSWER: dict[str, Any] = {"type": "exact_answer", "name": "exact_answer"}
STATE: dict[str, Any] = {"type": "state_check", "name": "state_check"}


def graded(answer: bool | None, reason: str, state: bool | None = None) -> list[dict[str, Any]]:
    grades = [ANSWER | {"passed": answer, "value": answer, "reason": reason}]
    return grades if state is None else [*grades, STATE | {"passed": state, "value": state, "reason": "?"}]


def found(
    folder: Path, records: Sequence[Record], kind: str, tasks: Sequence[Task] = (task("a"),), **keys: Any
) -> list[tuple[str | None, int, int]]:
    """The suspects of a kind: task, trials, and of how many."""
    summary = summarise(run_of(folder / "run", manifest(tasks, **({"trials": 10} | keys)), records))
    assert list(summary).index("suspects") < list(summary).index("arms")
    return [(each["task_id"], each["trials"], each["of"]) for each in summary["suspects"] if each["kind"] == kind]


@pytest.mark.parametrize(
    ("count", "last", "suspect"), [(5, "failed", True), (4, "failed", False), (5, "passed", False)]
)
def test_a_task_that_nobody_passes_is_suspect_from_five_scored_trials_on(
    tmp_path: Path, count: int, last: Any, suspect: bool
) -> None:
    records = [record("a", n, "failed", arm=(BASE, NEW)[n % 2]) for n in range(1, count)]
    records += [record("a", count, last), record("a", 9, "invalid", cause="http")]
    assert found(tmp_path, records, "never_passed", arms=(BASE, NEW)) == ([("a", 5, 5)] if suspect else [])


@pytest.mark.parametrize(
    ("answers", "arms", "suspect"),
    [
        (["87.73", "87.73"], (BASE, NEW), 2),
        (["About  Ten", "about ten"], (BASE, NEW), 2),
        (["87.73", "87.73"], (BASE, BASE), 0),  # one arm repeats itself
        (["87.73", "87.74"], (BASE, NEW), 0),
    ],
)
def test_two_arms_that_agree_on_a_rejected_answer_may_be_right(
    tmp_path: Path, answers: list[str], arms: Any, suspect: int
) -> None:  # C52
    records = [
        record("a", n, "failed", arm=arm, answer=answer, graders=graded(False, "wrong"))
        for n, (answer, arm) in enumerate(zip(answers, arms, strict=True), 1)
    ]
    assert found(tmp_path, records, "agreed_answer", arms=(BASE, NEW)) == ([("a", suspect, 2)] if suspect else [])


def test_near_misses_are_counted_among_the_failures(tmp_path: Path) -> None:
    records = [record("a", n, "failed", graders=graded(False, "near_miss")) for n in (1, 2)]
    records += [record("a", 3, "failed", graders=graded(False, "wrong")), record("a", 4)]
    assert found(tmp_path, records, "near_miss") == [("a", 2, 3)]


@pytest.mark.parametrize(
    ("reason", "state", "suspect"),
    [("format", True, True), ("hedged", True, True), ("wrong", True, False), ("format", False, False)],
)
def test_the_right_state_with_a_rejected_form_of_answer_is_told(
    tmp_path: Path, reason: str, state: bool, suspect: bool
) -> None:
    records = [record("a", 1, "failed", graders=graded(False, reason, state)), record("a", 2)]
    assert found(tmp_path, records, "right_state") == ([("a", 1, 2)] if suspect else [])


def test_passes_that_never_touched_the_server_are_told_where_a_call_was_expected(tmp_path: Path) -> None:  # C50
    tasks = [task("a"), task("none", expects="abstain")]
    records = [record("a", 1, tool_calls=0), record("a", 2), record("none", 1, tool_calls=0)]
    assert found(tmp_path, records, "untouched", tasks) == [("a", 1, 2)]


def test_equal_replies_with_different_verdicts_are_told(tmp_path: Path) -> None:
    records = [record("a", 1, reply_hash="x"), record("a", 2, "failed", reply_hash="x"), record("a", 3, reply_hash="y")]
    assert found(tmp_path, records, "unstable_verdict") == [("a", 2, 3)]


def test_trials_that_are_copies_are_told_by_arm(tmp_path: Path) -> None:
    records = [record("a", n, reply_hash="same") for n in range(1, 5)]
    records += [record("a", n, arm=NEW) for n in range(1, 5)]
    assert found(tmp_path, records, "copied_trials", arms=(BASE, NEW)) == [(None, 3, 3)]


@pytest.mark.parametrize(
    ("copies", "repeatable"), [(0, 5), (1, 1), (1, 2), (3, 10), (4, 10), (15, 100), (17, 100), (2000, 10000)]
)
def test_copies_are_beyond_chance_by_the_binomial_test(copies: int, repeatable: int) -> None:
    expected = binomtest(copies, repeatable, 0.1, alternative="greater").pvalue < 0.05
    assert copied_beyond_chance(copies, repeatable) is bool(expected)


def test_tasks_that_flip_between_trials_of_an_arm_are_one_entry(tmp_path: Path) -> None:
    tasks = [task("a"), task("b"), task("c")]
    records = [
        record("a", 1),
        record("a", 2, "failed"),
        record("b", 1),
        record("c", 1),
        record("c", 1, "failed", arm=NEW),
    ]
    assert found(tmp_path, records, "flips", tasks, arms=(BASE, NEW)) == [(None, 1, 2)]


def test_expected_tools_have_precision_recall_and_a_table_and_never_decide(tmp_path: Path) -> None:
    tasks = [task("a", expected_tools=["s/get", "put"]), task("b")]
    records = [
        record("a", 1, tool_sequence=["get", "get", "find", "list"]),  # 1 of 3 called, 1 of 2 expected
        record("a", 2, "failed", tool_sequence=["s/get", "s/put"]),  # 2 of 2, 2 of 2
        record("a", 3, "failed", tool_sequence=[]),  # no precision, 0 of 2
        record("b", 1, tool_sequence=["get"]),
    ]
    summary = summarise(run_of(tmp_path / "run", manifest(tasks, trials=3), records))
    [row] = summary["expected_tools"]["rows"]
    assert (row["task_id"], row["trials"]) == ("a", 3)
    assert row["precision"] == pytest.approx((1 / 3 + 1) / 2)
    assert row["recall"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    table = summary["expected_tools"]["table"]
    assert [(each["expected"], each["trials"], each["called"]["find"]) for each in table] == [
        ("s/get", 3, 1), ("put", 3, 1)
    ]  # fmt: skip
    assert summary["arms"][0]["passed"] == 2


def test_tools_that_were_called_equally_often_stand_by_name_in_every_process(tmp_path: Path) -> None:
    names = [f"tool_{letter}" for letter in "gbeacdf"]
    records = [record("a", 1, tool_sequence=[*names, "often"]), record("a", 2, tool_sequence=["often"])]
    summary = summarise(run_of(tmp_path / "run", manifest([task("a", expected_tools=["often"])], trials=2), records))
    [row] = summary["expected_tools"]["table"]
    assert list(row["called"].items()) == [("often", 2), *((name, 1) for name in sorted(names))]


def test_tasks_that_flip_are_named_and_those_beyond_five_are_counted(tmp_path: Path) -> None:
    names = [f"task-{number}" for number in range(7)]
    records = [each for name in names for each in (record(name, 1), record(name, 2, "failed"))]
    summary = summarise(run_of(tmp_path / "run", manifest([task(name) for name in names], trials=2), records))
    [flips] = [each for each in summary["suspects"] if each["kind"] == "flips"]
    assert flips["reason"].endswith(f"by the same arm: {', '.join(names[:5])} and 2 more")


def test_partial_credit_stands_beside_the_rate_and_not_in_it(tmp_path: Path) -> None:
    records = [
        record("a", 1, "failed", partial=0.75),
        record("a", 2, partial=1.0),
        record("b", 1, "failed", partial=0.5),
    ]
    summary = summarise(run_of(tmp_path / "run", manifest([task("a"), task("b")]), records))
    [arm] = summary["arms"]
    assert arm["rate"] == pytest.approx((1 / 2 + 0) / 2)
    assert arm["partial_credit"] == pytest.approx((0.875 + 0.5) / 2)
    assert [row["partial"] for row in summary["tasks"]] == [0.875, 0.5]


def test_a_task_that_is_graded_by_two_graders_is_warned_of(tmp_path: Path) -> None:
    grades = [ANSWER | {"passed": True, "value": True, "hash": name} for name in ("one", "two")]
    records = [record("a", n, graders=[grade]) for n, grade in enumerate(grades, 1)]
    summary = summarise(run_of(tmp_path / "run", manifest([task("a")]), records))
    assert any("graded by different graders" in warning for warning in summary["warnings"])
