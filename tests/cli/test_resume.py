"""A run that is killed at any moment, and what `--resume` makes of it."""

import json
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import (
    SERVER,
    Ended,
    adds,
    asks,
    ended,
    make_project,
    mcptrials,
    records,
    run_folder,
    running,
    wait_until,
)

KILLS, AT_A_TIME = 10, 3
TASKS = ("a", "b", "c")


def begun(run: Path) -> int:
    """Trials that were begun so far."""
    return len(list(run.glob("transcripts/*")))


def kill_at_random(commands: Preloaded, folder: Path, rng: random.Random) -> None:
    """Goes on with the run and kills it between two trials, or in the middle of one."""
    run = folder / "runs" / "long"
    words = ["--resume", "long"] if run.exists() else ["--name", "long"]
    target = begun(run) + rng.randint(1, 2 * AT_A_TIME)
    command = commands.start(folder, "run", *words)
    wait_until(lambda: begun(run) >= target, f"{target} trials were begun")
    time.sleep(rng.uniform(0, 0.1))  # not a wait for anything: the moment of the kill
    os.kill(command.pid, signal.SIGKILL)
    assert command.ended().code == -signal.SIGKILL, "there was nothing left to kill"


def test_killed_at_ten_random_moments_a_run_loses_nothing_and_repeats_only_what_was_in_flight(
    tmp_path: Path, commands: Preloaded
) -> None:
    script = {task: adds("5", delay_ms=60) for task in TASKS}
    folder = make_project(tmp_path / "p", [asks(task) for task in TASKS], script, trials=25, concurrency=AT_A_TIME)
    run, rng = folder / "runs" / "long", random.Random(20261130)
    settled: set[str] = set()
    for _ in range(KILLS):
        kill_at_random(commands, folder, rng)
        whole = [path.read_text().rpartition("\n")[0] for path in run.glob("records/*")]
        now = {json.loads(line)["transcript"] for lines in whole for line in lines.splitlines()}
        assert settled <= now
        settled = now
    leftover = Path(json.loads((run / "lock").read_text())["trial_root"])
    assert leftover.exists()

    result = mcptrials(folder, "run", "--resume", "long", "--json")
    assert (result.code, result.err) == (0, "")
    assert not leftover.exists()
    found = records(run)
    planned = Counter({(task, number): 1 for task in TASKS for number in range(1, 26)})
    assert Counter((r["task_id"], r["trial"]) for r in found) == planned
    assert {r["verdict"] for r in found} == {"passed"}
    assert result.document["data"]["totals"]["passed"] == 75
    lost = [path for path in run.glob("transcripts/*") if ".lost-" in path.name]
    assert begun(run) == len(planned) + len(lost)
    in_flight = 2 * AT_A_TIME  # of each slot, one trial that plays and one whose servers are being closed
    assert 1 <= len(lost) <= KILLS * in_flight


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (folder := tmp_path_factory.mktemp("resume") / "p").mkdir()
    (folder / "fixture.txt").write_text("as it was")
    environment = {"files": {"fixture.txt": "{trial_dir}/fixture.txt"}}
    tasks = [asks("sums"), asks("more")]
    return make_project(folder, tasks, {"sums": adds("5"), "more": adds("5")}, environment=environment)


@pytest.fixture(scope="module")
def complete(project: Path, commands: Preloaded) -> Ended:
    return commands.run(project, "run", "--quiet", "--name", "done")


def test_a_complete_run_runs_nothing_again(project: Path, complete: Ended, commands: Preloaded) -> None:
    run = project / "runs" / "done"
    before = {path.name for path in run.glob("*/*")}
    result = commands.run(project, "run", "--resume", "done")
    assert (complete.code, result.code) == (0, 0)
    assert result.err == "run done owes no trial\n"
    assert result.out == complete.out
    assert {path.name for path in run.glob("*/*")} == before
    assert len(records(run)) == 4


def test_a_torn_last_line_is_no_record_and_its_trial_is_owed(
    project: Path, complete: Ended, commands: Preloaded, tmp_path: Path
) -> None:
    assert complete.code == 0
    folder = tmp_path / "p"
    shutil.copytree(project, folder)
    [file] = (folder / "runs" / "done" / "records").iterdir()
    os.truncate(file, file.stat().st_size - 100)
    (folder / "runs" / "done" / "lock").write_text('{"pid": 1, "host": "elsewhere", "trial_root": "/nowhere"}')

    assert commands.run(folder, "show", "done", "--json").document["data"]["missing"] == 1
    result = commands.run(folder, "run", "--resume", "done", "--json")
    assert result.code == 0
    assert result.document["data"]["totals"]["passed"] == 4
    assert [path.name for path in sorted(file.parent.iterdir())] == ["w1.jsonl", "w2.jsonl"]
    assert len((file.parent / "w2.jsonl").read_text().splitlines()) == 1


def test_what_differs_from_the_beginning_is_named_and_refused(
    project: Path, complete: Ended, commands: Preloaded, tmp_path: Path
) -> None:
    assert complete.code == 0
    tasks = [asks("sums"), asks("more")]
    tiny = {"command": "{python}", "args": [str(SERVER)]}
    files = {"fixture.txt": "{trial_dir}/fixture.txt"}
    cases: dict[str, tuple[dict[str, Any], list[str], str]] = {
        "grader": ({"tasks": [asks("sums", expected="6"), tasks[1]]}, [], "other tasks: sums has changed"),
        "task that came since, which is no concern of the run": ({"tasks": [*tasks, asks("new")]}, [], ""),
        "task gone": ({"tasks": tasks[:1]}, [], "other tasks: more is gone"),
        "fixture": ({"fixture": "as it is"}, [], "other environments: more has changed, sums has changed"),
        "target": ({"environment": {"files": {"fixture.txt": "{trial_dir}/f"}}}, [], "other environments: more has"),
        "model": ({}, ["--model", "scripted:other.yaml"], "scripted:script.yaml [a9d019f0] is gone; "),
        "setting": (
            {"models": [{"model": "scripted:script.yaml", "settings": {"temperature": 1}}]},
            [],
            "other arms: ",
        ),
        "variant": ({"variants": {"base": {}, "new": {"tiny": {"args": ["x"]}}}}, [], "other arms: new · loop · "),
        "server": ({"servers": {"tiny": tiny | {"args": [str(SERVER), "x"]}}}, [], "servers: tiny of base has changed"),
        "limit": ({"limits": {"turns": 7}}, [], "other limits: turns was 20, is 7"),
        "seed": ({"seed": 1}, [], "other settings: seed was 0, is 1"),
        "trials": ({"trials": 3}, [], "other settings: trials in the project file was 2, is 3"),
        "trials asked": ({}, ["--trials", "3"], "other settings: --trials was not given, is 3"),
        "trials of a task": ({"tasks": [asks("sums", trials=9), tasks[1]]}, [], "settings: trials of sums is new"),
        "split": ({}, ["--split", "held_out"], "the suite has no held_out task"),
        "only": ({}, ["--only", "sums"], "--only does not go with --resume: the run keeps its own; leave it out"),
        "name": ({}, ["--name", "other"], "--name does not go with --resume"),
    }
    for name, (keys, words, message) in cases.items():
        folder = tmp_path / name
        shutil.copytree(project, folder)
        changed = {"environment": {"files": files}} | keys
        (folder / "fixture.txt").write_text(changed.pop("fixture", "as it was"))
        script = {task: adds("5") for task in ("sums", "more", "new")}
        make_project(folder, changed.pop("tasks", tasks), script, **changed)
        (folder / "other.yaml").write_text((folder / "script.yaml").read_text())
        result = commands.run(folder, "run", "--quiet", "--resume", "done", *words)
        if message:
            assert result.code == 2, (name, result)
            assert re.fullmatch(r"error: [^\n]+; [^\n]+\n", result.err), (name, result.err)
            assert message in result.err, (name, result.err)
        else:
            assert (name, result.code, result.err) == (name, 0, "")
        assert len(records(folder / "runs" / "done")) == 4


def test_a_server_that_says_something_else_than_at_the_beginning_is_refused(
    tmp_path: Path, commands: Preloaded
) -> None:
    server = tmp_path / "server.py"
    server.write_text(SERVER.read_text())
    servers = {"tiny": {"command": "{python}", "args": [str(server)]}}
    refused = {"steps": [{"error": {"status": 400}}]}
    folder = make_project(tmp_path / "p", [asks("sums")], {"sums": refused}, servers=servers, trials=1)
    assert commands.run(folder, "run", "--quiet").code == 3
    server.write_text(SERVER.read_text().replace('"version": "1.0"', '"version": "1.1"'))
    result = commands.run(folder, "run", "--quiet", "--resume", f"runs/{run_folder(folder).name}")
    assert result.code == 2
    assert "server 'tiny': it has changed since the run began: version; bring the old version back" in result.err


def test_the_lock_of_a_living_process_holds_and_that_of_a_dead_one_does_not(
    tmp_path: Path, commands: Preloaded
) -> None:
    def project(delay_ms: int) -> Path:
        return make_project(tmp_path, [asks("slow")], {"slow": adds("5", delay_ms)}, trials=4, concurrency=2)

    folder = project(delay_ms=20_000)
    with running(folder, "run", "--name", "one") as holder:
        wait_until((folder / "runs" / "one" / "wire").exists, "the run is locked")
        refused = commands.run(folder, "run", "--resume", "one")
        assert holder.poll() is None
        holder.kill()
        ended(holder)
    assert refused.code == 2
    who = rf"the run is being written by process {holder.pid} on \S+; wait for it or stop it\n"
    assert re.search(rf"error: \S+/runs/one/lock: {who}", refused.err)
    project(delay_ms=0)
    assert commands.run(folder, "run", "--quiet", "--resume", "one").code == 0
    assert len(records(folder / "runs" / "one")) == 4
