"""Draft tasks: loaded and checked, never run."""

from pathlib import Path

from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import adds, asks, make_project, records, run_folder

from mcptrials.project import Project


def test_a_run_leaves_drafts_out_and_says_how_many(commands: Preloaded, tmp_path: Path) -> None:
    tasks = [asks("ready"), asks("one", draft=True), asks("two", draft=True), asks("far", draft=True, split="held_out")]
    make_project(tmp_path, tasks, {"ready": adds("5")})
    ended = commands.run(tmp_path, "run", "--json")
    assert ended.code == 0, ended.err
    assert "2 draft tasks are left out; remove 'draft: true' from a task to run it" in ended.document["warnings"]
    assert {record["task_id"] for record in records(run_folder(tmp_path))} == {"ready"}


def test_nothing_but_drafts_is_an_error_before_any_run(commands: Preloaded, tmp_path: Path) -> None:
    make_project(tmp_path, [asks("ready"), asks("one", draft=True)], {"ready": adds("5")})
    ended = commands.run(tmp_path, "run", "--only", "one")
    assert ended.code == 2
    assert ended.err == "error: only drafts are left, which do not run: one; complete one and remove 'draft: true'\n"
    assert not (tmp_path / "runs").exists()


def test_drafts_are_checked_like_any_task(commands: Preloaded, tmp_path: Path) -> None:
    make_project(tmp_path, [asks("ready"), asks("one", draft=True, prompt=" ")], {})
    ended = commands.run(tmp_path, "run")
    assert ended.code == 2
    assert "the prompt is empty" in ended.err


def test_a_draft_that_is_completed_keeps_its_hash(tmp_path: Path) -> None:
    make_project(tmp_path, [asks("a"), asks("b", draft=True)], {})
    first, second = Project.load(tmp_path).suite.tasks
    assert first.hash == second.hash
