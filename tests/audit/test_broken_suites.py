"""`mcptrials check` on the tracker example: it is sound, and each broken copy of it is caught with the right reason."""

import json
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mcptrials.audit import Audit, check_project
from mcptrials.project import Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "tracker"
INSIDE = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from descriptions import STYLES
from server import Tracker, make_server


def make(trial_dir):
    return make_server(Tracker(Path(trial_dir) / "tracker.db"), STYLES["plain"])
"""
Tasks = dict[str, Any]


def load(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


TASKS: Tasks = {
    task["id"]: deepcopy({**suite["defaults"], **task})
    for suite in map(load, sorted((EXAMPLE / "tasks").glob("*.yaml")))
    for task in suite["tasks"]
}
IN_PROCESS = {"tracker": {"python": "./inside.py:make"}}
"""The same server without a process of its own: a fifth of the time."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its server in this process; each copy has files of tasks and of the project of its own."""
    folder = tmp_path_factory.mktemp("tracker")
    for name in ("server.py", "descriptions.py"):
        shutil.copy(EXAMPLE / name, folder)
    shutil.copytree(EXAMPLE / "fixtures", folder / "fixtures")
    (folder / "inside.py").write_text(INSIDE)
    return folder


def audit(home: Path, name: str, tasks: Tasks, only: str | None = None, **keys: Any) -> Audit:
    (home / f"{name}.json").write_text(json.dumps(list(tasks.values())))
    project = {**load(EXAMPLE / "mcptrials.yaml"), "servers": IN_PROCESS, "tasks": [f"{name}.json"], **keys}
    path = home / f"{name}-project.json"
    path.write_text(json.dumps(project))
    return check_project(Project.load(path), (), offline=True, notice=lambda _: None, only=only)


def found(home: Path, name: str, tasks: Tasks, only: str, **keys: Any) -> dict[str, tuple[str, list[str]]]:
    """By task: its status and the reasons."""
    return {row["task_id"]: (row["status"], row["reasons"]) for row in audit(home, name, tasks, only, **keys).tasks}


def changed(task_id: str, **keys: Any) -> Tasks:
    """The suite with other keys of one task."""
    return TASKS | {task_id: TASKS[task_id] | keys}


def graders(task_id: str, edit: Callable[[list[dict[str, Any]]], object]) -> Tasks:
    """The suite with other graders of one task."""
    own = deepcopy(TASKS[task_id]["graders"])
    edit(own)
    return changed(task_id, graders=own)


def test_the_example_itself_is_sound_and_says_which_faults_it_notices(home: Path) -> None:
    said = audit(home, "sound", TASKS)
    assert [(row["status"], row["reasons"]) for row in said.tasks] == [("ok", [])] * len(TASKS)
    assert said.passed
    lines = {line.subject: line for line in said.lines if line.section == "tasks"}
    assert lines["faults"].facts == {"faults": 15, "noticed": 10}
    assert lines["classes"].facts == {"expects": {"act": 11, "not_found": 1, "abstain": 2}}
    assert (lines["calls"].level, lines["calls"].facts["single_call"]) == ("warn", 6)


VACUOUS = graders("label-by-key", lambda own: (own[1].update(expected_contains="tax"), own.pop(2)))
WRONG = changed(
    "label-described",
    reference={
        "answer": "customer-reported, theme",
        "calls": [{"tool": "add_label", "args": {"key": "WEB-128", "label": "customer-reported"}}],
    },
)
LEAKING = changed(
    "issue-assignee", prompt="Tomas Lind opened BILL-254 for himself. Who is assigned to it? Full name only."
)
UNSTABLE = changed(
    "last-reopened", prompt="How many days ago was issue BILL-163 reopened for the last time? Reply with the date only."
)
STRICT = graders("last-reopened", lambda own: own[0].update(kind="text"))
STRICT["last-reopened"] |= {"prompt": "When was issue BILL-163 last reopened? Look at its history first."}
DEPENDENT = TASKS | {
    "second-label": {
        "id": "second-label",
        "prompt": "Add the label urgent to the issue that has the label needs-decision. Reply with its key only.",
        "graders": [
            {"type": "exact_answer", "expected": "BILL-425", "kind": "id"},
            {"type": "state_check", "query": "labels of BILL-425", "expected": ["needs-decision", "urgent"]},
        ],
        "reference": {
            "answer": "BILL-425",
            "calls": [{"tool": "add_label", "args": {"key": "BILL-425", "label": "urgent"}}],
        },
    }
}
IDLE = graders("issue-version", lambda own: own.pop(0))
TOOTHLESS = graders("issue-version", lambda own: own[1].update(expected_regex=".*") or own[1].pop("expected"))

BROKEN: Mapping[str, tuple[Tasks, str, str, str, str]] = {
    "a vacuous state check": (
        VACUOUS,
        "label-by-key",
        "label-by-key",
        "broken",
        "passes with the right answer though nothing is done: no grader sees what its reference changes",
    ),
    "a wrong reference": (
        WRONG,
        "label-described",
        "label-described",
        "broken",
        "its reference fails: grader 'state_check' says wrong_state: 'customer-reported' is not in \"theme\"",
    ),
    "a leaking prompt": (
        LEAKING,
        "issue-assignee",
        "issue-assignee",
        "warning",
        "leaks: its answer stands in its prompt, so that it passes without the server",
    ),
    "an unstable answer": (
        UNSTABLE,
        "last-reopened",
        "last-reopened",
        "warning",
        "unstable: its prompt says 'days ago' and no date, so its right answer changes with the day of the run",
    ),
    "an over-strict format": (
        STRICT,
        "last-reopened",
        "last-reopened",
        "warning",
        "over-strict: its grader refuses '14 April 2026', which says the same, and its prompt asks for no form",
    ),
    "dependent tasks": (
        DEPENDENT,
        "label-blocked,second-label",
        "second-label",
        "broken",
        "it passes after the reference of task label-blocked: it depends on it",
    ),
    "a task that is passed by doing nothing": (
        IDLE,
        "issue-version",
        "issue-version",
        "broken",
        "passes with no answer and without a call",
    ),
    "a grader that cannot fail": (
        TOOTHLESS,
        "issue-version",
        "issue-version",
        "broken",
        "grader 'no label changed' cannot fail: it passes the reference also when nothing is there to be read",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_copy_is_caught_with_its_reason(home: Path, name: str) -> None:
    tasks, only, task_id, level, why = BROKEN[name]
    status, reasons = found(home, name.replace(" ", "-"), tasks, only)[task_id]
    assert status == level
    assert any(why in reason for reason in reasons), reasons
