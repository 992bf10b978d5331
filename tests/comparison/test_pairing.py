"""Which tasks of two runs are the same, and what is said of those that are not."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.hand_made import only, side, task

from mcptrials import compare
from mcptrials.errors import UsageError
from mcptrials.store import Run


def test_only_equal_tasks_are_paired_and_the_others_are_named(tmp_path: Path) -> None:  # C72
    a = side(tmp_path / "a", {"gone": [1], "same": [1], "edited": [1], "world": [1]})
    b = side(tmp_path / "b", {"same": [0], "edited": [0], "world": [0], "new": [0]})
    lines = (tmp_path / "b" / "records" / "w1.jsonl").read_text().splitlines()
    values = [json.loads(line) for line in lines]
    values[1]["task_hash"], values[2]["environment_hash"] = "other", "other"
    (tmp_path / "b" / "records" / "w1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in values))
    assert only(compare(a, b))["tasks"] == {
        "paired": ["same"],
        "added": ["new"],
        "removed": ["gone"],
        "edited": [{"task_id": "edited", "what": "task"}, {"task_id": "world", "what": "environment"}],
        "untried": [],
    }


def test_other_graders_are_another_task(tmp_path: Path) -> None:
    def graded(version: str) -> Any:
        return {"graders": [{"type": "judge", "name": "j", "passed": True, "hash": version}]}

    a, b = (side(tmp_path / each, {"t": [1], "u": [1]}, keys=graded(each)) for each in "ab")
    with pytest.raises(UsageError, match=r"every common task was edited: t \(graders\), u \(graders\)"):
        compare(a, b)


def test_tasks_graded_otherwise_are_paired_once_both_runs_are_graded_alike(tmp_path: Path) -> None:
    def of(version: str, grader: str) -> Run:
        asked = task("t", graders=[{"type": "exact_answer", "settings": {"expected": version}}])
        graders = [{"type": "exact_answer", "name": "exact_answer", "passed": True, "hash": grader}]
        keys = {"graders": graders, "task_hash": asked.hash}
        return side(tmp_path / f"{version}-{grader}", {"t": [1, 0]}, tasks=[asked], keys=keys)

    with pytest.raises(UsageError, match=r"edited: t \(graders\); grade both runs again .*: mcptrials grade RUN"):
        compare(of("5", "g1"), of("6", "g2"))
    assert only(compare(of("5", "g3"), of("6", "g3")))["tasks"]["paired"] == ["t"]


def test_a_task_that_asks_something_else_is_no_task_graded_otherwise(tmp_path: Path) -> None:
    def of(prompt: str) -> Run:
        asked = task("t", prompt=prompt, graders=[{"type": "exact_answer", "settings": {"expected": prompt}}])
        graders = [{"type": "exact_answer", "name": "exact_answer", "passed": True, "hash": "alike"}]
        return side(tmp_path / prompt, {"t": [1]}, tasks=[asked], keys={"graders": graders, "task_hash": asked.hash})

    with pytest.raises(UsageError, match=r"every common task was edited: t \(task\)"):
        compare(of("one"), of("other"))
