"""The hash of a task says whether its results may be paired: relabelling keeps it, everything else changes it."""

from typing import Any

import pytest

from mcptrials.task import Suite, Task


def task_with(**changes: Any) -> Task:
    base = {"id": "t", "prompt": "p", "graders": [{"type": "exact_answer", "settings": {"expected": "x"}}]}
    return Task.model_validate(base | changes)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "other"},
        {"tags": ["a"]},
        {"notes": "n"},
        {"source": "s"},
        {"group": "g"},
        {"split": "held_out"},
        {"purpose": "regression"},
        {"reference": {"answer": "x"}},
        {"expected_tools": ["a"]},
        {"trials": 3},
        {"noop_should_pass": True},
        {"graders": [{"type": "exact_answer", "settings": {"expected": "x"}, "name": "n", "weight": 2}]},
    ],
)
def test_relabelling_a_task_keeps_its_hash(change: dict[str, Any]) -> None:
    assert task_with(**change).hash == task_with().hash


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "p "},
        {"expects": "abstain"},
        {"combine": "any"},
        {"environment": {"reset": []}},
        {"limits": {"turns": 3}},
        {"graders": [{"type": "exact_answer", "settings": {"expected": "y"}}]},
        {"graders": [{"type": "exact_answer", "settings": {"expected": "x"}, "gate": False}]},
        {"graders": [{"type": "exact_answer", "settings": {"expected": "x"}}] * 2},
    ],
)
def test_what_decides_a_tasks_outcome_changes_its_hash(change: dict[str, Any]) -> None:
    assert task_with(**change).hash != task_with().hash


def test_the_suites_hash_ignores_the_order_of_tasks_but_not_their_ids() -> None:
    one, two = task_with(id="a"), task_with(id="b")
    assert Suite(tasks=(one, two)).hash == Suite(tasks=(two, one)).hash
    assert Suite(tasks=(one, two)).hash != Suite(tasks=(one, task_with(id="c"))).hash
    assert [task.id for task in Suite(tasks=(one, two)).select(["b", "x"]).tasks] == ["b"]
