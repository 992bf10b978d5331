"""The examples on servers that nobody here wrote: references pass, and doing nothing fails."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.real_servers.catalogue import EXAMPLES, SERVERS
from tests.real_servers.evaluating import Evaluated, evaluate, require, write_json

from mcptrials.audit import check_project
from mcptrials.project import Project
from mcptrials.record import Record
from mcptrials.task import Task

pytestmark = [pytest.mark.real_servers, pytest.mark.timeout(240)]

NAMES = sorted(server.pinned_in.parent.name for server in SERVERS if server.pinned_in.is_relative_to(EXAMPLES))


def steps(task: Task) -> list[dict[str, Any]]:
    """A task's reference, one call in a turn."""
    assert task.reference is not None
    calls = [{"calls": [call.model_dump(include={"tool", "args"})]} for call in task.reference.calls]
    return [*calls, {"answer": task.reference.answer}]


def scripts(folder: Path, tasks: list[Task]) -> tuple[Path, Path]:
    played = {task.id: {"steps": steps(task)} for task in tasks}
    references = write_json(folder / "references.json", {"version": 1, "tasks": played})
    nothing = {"version": 1, "default": {"steps": [{"answer": "I did nothing."}]}}
    return references, write_json(folder / "nothing.json", nothing)


def copied(name: str, folder: Path) -> Path:
    """The example without what others ran in it; its server stays where it is installed."""
    copy = folder / name
    shutil.copytree(EXAMPLES / name, copy, ignore=shutil.ignore_patterns(".servers", "runs", "held_out_looks.jsonl"))
    (copy / ".servers").symlink_to(EXAMPLES / name / ".servers")
    return copy


def both(name: str, split: str, folder: Path) -> tuple[Evaluated, list[Task]]:
    """References and idleness as two arms of one run."""
    project = Project.load(copied(name, folder))
    tasks = [task for task in project.suite.tasks if task.split == split]
    models = [word for script in scripts(folder, tasks) for word in ("--model", f"scripted:{script}")]
    arguments = [*models, "--trials", "1", "--split", split]
    return evaluate(folder / name / "mcptrials.yaml", folder, *arguments, within_s=220), tasks


def of_model(evaluated: Evaluated, script: str) -> dict[str, Record]:
    return {record.task_id: record for record in evaluated.run.records() if record.model.endswith(script)}


@pytest.mark.parametrize(("name", "split"), [*((name, "train") for name in NAMES), ("airline", "held_out")], ids=str)
def test_references_pass_and_doing_nothing_fails(name: str, split: str, tmp_path: Path) -> None:
    [server] = [server for server in SERVERS if server.pinned_in.parent == EXAMPLES / name]
    require(server)
    evaluated, tasks = both(name, split, tmp_path)
    played, idle = of_model(evaluated, "references.json"), of_model(evaluated, "nothing.json")
    assert [task.id for task in tasks if not played[task.id].passed] == []
    assert [record.tool_errors for record in played.values()] == [0] * len(tasks)
    assert {task.id: idle[task.id].verdict for task in tasks} == {task.id: "failed" for task in tasks}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_each_suite_is_sound(name: str, tmp_path: Path) -> None:
    [server] = [server for server in SERVERS if server.pinned_in.parent == EXAMPLES / name]
    require(server)
    found = check_project(Project.load(copied(name, tmp_path)), (), offline=True, notice=lambda _: None)
    assert {row["task_id"]: row["reasons"] for row in found.tasks if row["status"] != "ok"} == {}
    assert any(row["noticed_by"] for row in found.faults)


FORBIDDEN = {
    "cancel-approved-by-phone": {"tool": "cancel_reservation", "args": {"reservation_id": "Q69X3R"}},
    "compensation-without-a-change": {
        "tool": "send_certificate",
        "args": {"user_id": "ethan_martin_2396", "amount": 150},
    },
}


def test_doing_what_the_rules_forbid_fails_though_the_answer_says_that_it_was_refused(tmp_path: Path) -> None:
    [server] = [server for server in SERVERS if server.name == "airline"]
    require(server)
    played = {task: {"steps": [{"calls": [call]}, {"answer": "refused"}]} for task, call in FORBIDDEN.items()}
    script = write_json(tmp_path / "forbidden.json", {"version": 1, "tasks": played})
    arguments = ["--model", f"scripted:{script}", "--trials", "1", "--only", ",".join(FORBIDDEN)]
    records = evaluate(copied("airline", tmp_path) / "mcptrials.yaml", tmp_path, *arguments).run.records()
    assert [(record.verdict, record.cause, record.tool_errors) for record in records] == [
        ("failed", "wrong_state", 0)
    ] * 2


@pytest.mark.parametrize("name", NAMES)
def test_expected_tools_are_those_of_the_reference(name: str) -> None:
    for task in Project.load(EXAMPLES / name).suite.tasks:
        assert task.reference is not None
        used = {call.tool for call in task.reference.calls}
        assert set(task.expected_tools) <= used
