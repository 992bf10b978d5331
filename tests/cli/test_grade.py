"""`mcptrials grade`: stored trials graded again by changed graders, and how graders of the user's end in a run."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import (
    adds,
    asks,
    make_project,
    records,
    run_folder,
    running,
    wait_until,
)

from mcptrials.store import Run

SHELL = ["sh", "-c"]


def command(script: str, **keys: Any) -> dict[str, Any]:
    return {"type": "command", "argv": [*SHELL, script], **keys}


def project(folder: Path, *tasks: Any, **keys: Any) -> Path:
    """Every task is answered with 5."""
    return make_project(folder, tasks, {task["id"]: adds("5") for task in tasks}, trials=1, **keys)


def regraded(folder: Path, *tasks: Any) -> None:
    """The task file, written anew."""
    (folder / "tasks.yaml").write_text(json.dumps(tasks))


def asked(task_id: str, *graders: Any, **keys: Any) -> dict[str, Any]:
    return {"id": task_id, "prompt": "How much is 2 and 3?", "graders": list(graders), **keys}


def test_changed_graders_flip_verdicts_with_reasons_and_every_reader_takes_the_newest(
    tmp_path: Path, commands: Preloaded
) -> None:
    folder = project(tmp_path / "p", asks("right"), asks("strict", expected="6"))
    assert commands.run(folder, "run", "--name", "r", "--quiet").code == 0
    written = {path: path.read_bytes() for path in (folder / "runs" / "r").rglob("*.jsonl")}
    (folder / "script.yaml").unlink()  # no model and no server is there any more
    regraded(folder, asks("right"), asks("strict", expected="5"))
    result = commands.run(folder, "grade", "r", "--json")
    assert (result.code, result.err) == (0, "")
    data = result.document["data"]
    assert (data["grades"], data["trials"], data["kept"], data["not_graded"]) == (1, 2, 0, [])
    [flip] = data["flips"]
    assert (flip["task_id"], flip["before"], flip["after"]) == ("strict", "failed", "passed")
    [change] = flip["graders"]
    assert (change["grader"], change["before"], change["after"], change["reason"]) == (
        "exact_answer",
        False,
        True,
        "match",
    )
    assert [(arm["rate_before"], arm["rate"]) for arm in data["arms"]] == [(0.5, 1.0)]
    assert {path: path.read_bytes() for path in written} == written  # nothing that was there has changed
    run = folder / "runs" / "r"
    assert [record.passed for record in Run.load(run).records() if record.task_id == "strict"] == [True]
    assert [record.passed for record in Run.load(run, grades=0).records() if record.task_id == "strict"] == [False]
    assert json.loads((run / "summary.json").read_text())["arms"][0]["rate"] == 1.0
    assert commands.run(folder, "show", "r", "--json").document["data"]["arms"][0]["rate"] == 1.0
    old = commands.run(folder, "show", "r", "--grades", "0", "--json").document["data"]
    assert (old["grades"], old["arms"][0]["rate"]) == (0, 0.5)
    missing = commands.run(folder, "show", "r", "--grades", "7")
    assert (missing.code, "the run has no grades 7; there are 0, 1" in missing.err) == (2, True)

    regraded(folder, asks("right", expected="6"), asks("strict", expected="6"))
    screen = commands.run(folder, "grade", "r", "--only", "right")
    assert screen.code == 0
    assert "right 1: passed -> failed (wrong_answer)" in screen.out
    assert "1 trial graded again, 1 as graded before; 1 verdict changed" in screen.out
    after = {record.task_id: record.passed for record in Run.load(run).records()}
    assert after == {"right": False, "strict": True}  # of the grades before, not of the run's own


def test_task_files_can_be_given_and_tasks_that_are_gone_keep_their_grades(tmp_path: Path, commands: Preloaded) -> None:
    folder = project(tmp_path / "p", asks("a"), asks("b"))
    assert commands.run(folder, "run", "--name", "r", "--quiet").code == 0
    (folder / "other.json").write_text(json.dumps([asks("a", expected="6") | {"prompt": "Something else?"}]))
    result = commands.run(folder, "grade", "r", "--tasks", "other.json", "--json")
    assert result.code == 0
    assert (result.document["data"]["trials"], result.document["data"]["kept"]) == (1, 1)
    assert result.document["warnings"] == [
        "task a: its prompt has changed since the run; the old answers are graded",
        "task b is not in the project any more: it keeps its grades",
    ]
    regraded(folder, asks("c"))
    nothing = commands.run(folder, "grade", "r")
    assert (nothing.code, "the run has no trial that could be graded again" in nothing.err) == (2, True)


def test_what_cannot_be_told_again_is_not_scored_and_its_old_verdict_stays_in_sight(
    tmp_path: Path, commands: Preloaded
) -> None:
    program = asked("program", command("exit 0"))
    folder = project(tmp_path / "p", asks("sums"), program)
    assert commands.run(folder, "run", "--name", "r", "--quiet").code == 0
    state = {"type": "state_check", "query": "labels", "expected": "x"}
    first = (folder / "mcptrials.yaml").read_text()
    config = json.loads(first)
    config["environment"] = {"readers": {"labels": {"file": "labels.txt"}}}
    (folder / "mcptrials.yaml").write_text(json.dumps(config))
    regraded(folder, asked("sums", state), asked("program", command("exit 0 # another")))
    result = commands.run(folder, "grade", "r", "--json")
    assert result.code == 3
    data = result.document["data"]
    assert sorted(row["reason"] for row in data["not_graded"]) == [
        "command: the trial's directory is gone; with keep_trial_dirs: true it is kept",
        "state_check: the run never read 'labels': only a new run does",
    ]
    assert {(flip["before"], flip["after"], flip["cause_after"]) for flip in data["flips"]} == {
        ("passed", "invalid", "grader_error")
    }
    run = folder / "runs" / "r"
    [kept] = [record for record in Run.load(run).records() if record.task_id == "program"]
    assert kept.graders[0].previous is not None
    assert kept.graders[0].previous["passed"] is True
    assert "before: pass, match" in commands.run(folder, "show", "r", "program").out
    assert "error: 2 of 2 trials could not be graded" in commands.run(folder, "grade", "r").err
    (folder / "mcptrials.yaml").write_text(first)
    regraded(folder, asks("sums"), program)
    assert "owes no trial" in commands.run(folder, "run", "--resume", "r").err  # nothing is paid for twice


def test_a_grader_that_has_not_changed_keeps_the_grade_that_it_cannot_give_again(
    tmp_path: Path, commands: Preloaded
) -> None:
    folder = project(tmp_path / "p", asks("sums"), asked("program", command("exit 0")))
    assert commands.run(folder, "run", "--name", "r", "--quiet").code == 0
    regraded(folder, asks("sums", "6"), asked("program", command("exit 0")))
    result = commands.run(folder, "grade", "r", "--json")
    assert result.code == 0
    data = result.document["data"]
    assert (data["grades_kept"], data["not_graded"]) == (1, [])
    assert [(flip["task_id"], flip["after"]) for flip in data["flips"]] == [("sums", "failed")]
    assert "1 grade kept: what was graded is gone, and the grader is the same" in commands.run(folder, "grade", "r").out


def test_a_command_grades_again_where_trial_directories_are_kept(tmp_path: Path, commands: Preloaded) -> None:
    folder = project(tmp_path / "p", asked("program", command("exit 1")), keep_trial_dirs=True)
    assert commands.run(folder, "run", "--name", "r", "--quiet").code == 0
    regraded(folder, asked("program", command('test -d "$MCPTRIALS_TRIAL_DIR" && grep -q 5 "$MCPTRIALS_ANSWER_FILE"')))
    result = commands.run(folder, "grade", "r", "--json")
    assert (result.code, [flip["after"] for flip in result.document["data"]["flips"]]) == (0, ["passed"])


def test_damaged_grades_are_an_error_that_names_the_file(tmp_path: Path, commands: Preloaded) -> None:
    folder = project(tmp_path / "p", asks("sums"))
    assert commands.run(folder, "run", "--name", "r", "--quiet").code == 0
    grades = folder / "runs" / "r" / "grades"
    grades.mkdir()
    (grades / ".2.jsonl.77.tmp").write_text("half a li")  # of a process that was killed
    assert commands.run(folder, "show", "r").code == 0
    (grades / "1.jsonl").write_text('{"task_id": "sums"}\n')
    shown = commands.run(folder, "show", "r")
    assert shown.code == 2
    assert "grades/1.jsonl: these grades cannot be read; restore the file, or remove it" in shown.err


def test_grades_that_could_not_be_added_are_refused_before_anything_is_graded(
    tmp_path: Path, commands: Preloaded
) -> None:
    folder = project(tmp_path / "p", asks("a"))
    assert commands.run(folder, "run", "--name", "r", "--quiet").code == 0
    (folder / "runs" / "r" / "grades").write_text("")
    result = commands.run(folder, "grade", "r")
    assert (result.code, result.err.splitlines()[-1]) == (
        2, f"error: {folder / 'runs/r/grades'}: grades of a run stand in a folder, and this is none; move it away",
    )  # fmt: skip


def test_in_a_run_weights_make_partial_credit_and_rules_report_unless_they_gate(
    tmp_path: Path, commands: Preloaded
) -> None:  # C59
    (tmp_path / "checks.py").write_text(
        "print('loud')\ndef half(given):\n    return 0.5\ndef hash(given): return 'yes'\n"
    )
    called = {"type": "forbidden_tools", "tools": ["tiny/add"]}
    graders = [command("exit 0", weight=3), {"type": "python", "call": "../checks.py:half"}]
    tasks = [
        asked("mixed", *graders, {"type": "exact_answer", "expected": "5", "gate": False}),
        asked("either", *graders, combine="any"),
        asked("reported", command("exit 0"), called),
        asked("gated", command("exit 0"), called | {"gate": True}),
        asked("odd", command("exit 0"), {"type": "python", "call": "../checks.py:hash"}),
    ]
    folder = project(tmp_path / "p", *tasks, max_invalid=0.5)
    result = commands.run(folder, "run", "--json")
    assert result.code == 0
    found = {each["task_id"]: each for each in records(run_folder(folder))}
    assert {name: (each["verdict"], each["cause"]) for name, each in found.items()} == {
        "mixed": ("failed", "wrong_answer"),
        "either": ("passed", None),
        "reported": ("passed", None),
        "gated": ("failed", "called_forbidden_tool"),
        "odd": ("invalid", "grader_error"),
    }
    assert {name: each["partial"] for name, each in found.items()} == {
        "mixed": (3 * 1 + 1 * 0.5) / 4, "either": (3 * 1 + 1 * 0.5) / 4, "reported": 1.0, "gated": 0.5, "odd": None
    }  # fmt: skip
    assert all(grade["hash"] for each in found.values() for grade in each["graders"])
    [arm] = result.document["data"]["arms"]
    assert (arm["rate"], arm["invalid"]) == (pytest.approx(2 / 4), 1)


@pytest.mark.parametrize("most", [0.05, 1])
def test_a_suite_whose_graders_cannot_run_is_incomplete(tmp_path: Path, commands: Preloaded, most: float) -> None:
    folder = project(tmp_path / "p", asked("hangs", command("sleep 60", timeout_seconds=0.2)),
                     asked("breaks", command("no-such-program")), max_invalid=most)  # fmt: skip
    result = commands.run(folder, "run", "--json")
    assert result.code == 3
    assert [arm["rate"] for arm in result.document["data"]["arms"]] == [None]
    resume = f"mcptrials run --resume runs/{run_folder(folder).name}"
    hint = f"mend what the grader runs or reads, then go on with: {resume}; if the task file changes, run anew"
    assert result.document["error"]["hint"] == hint
    kept = project(tmp_path / "k", asked("breaks", command("exit 2")), keep_trial_dirs=True)
    hint = commands.run(kept, "run", "--json").document["error"]["hint"]
    assert hint == f"mend the grader, then grade the same trials again: mcptrials grade runs/{run_folder(kept).name}"
    assert {each["graders"][0]["value"] for each in records(run_folder(folder))} == {None}


def test_a_run_whose_grader_gave_out_is_graded_later_without_a_model_or_a_server(  # C65
    tmp_path: Path, commands: Preloaded
) -> None:
    folder = project(tmp_path / "p", asked("t", {"type": "python", "call": "./judge.py:check"}, trials=2))
    (folder / "judge.py").write_text("def check(given):\n    raise RuntimeError('429 Too Many Requests')\n")
    result = commands.run(folder, "run", "--name", "r", "--json")
    [arm] = result.document["data"]["arms"]
    assert (result.code, arm["rate"], arm["invalid"]) == (3, None, 2)
    before = records(folder / "runs" / "r")
    assert {(each["answer"], each["blame"]) for each in before} == {("5", "grader")}
    (folder / "judge.py").write_text("def check(given):\n    return given.outcome.answer == '5'\n")
    (folder / "script.yaml").unlink()
    config = json.loads((folder / "mcptrials.yaml").read_text())
    config["servers"]["tiny"] = {"command": "sh", "args": ["-c", f"touch {tmp_path}/started"]}
    (folder / "mcptrials.yaml").write_text(json.dumps(config))
    result = commands.run(folder, "grade", "r", "--json")
    assert (result.code, result.document["data"]["not_graded"]) == (0, [])
    [arm] = commands.run(folder, "show", "r", "--json").document["data"]["arms"]
    assert (arm["rate"], arm["passed"], arm["invalid"]) == (1, 2, 0)
    assert records(folder / "runs" / "r") == before
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("grader", "problem"),
    [
        ({"type": "python", "call": "./none.py:check"}, "cannot load './none.py:check'"),
        ({"type": "python", "call": "check"}, "a function is written module:function"),
        ({"type": "command", "argv": []}, "argv"),
        ({"type": "command", "argv": ["x"], "timeout_seconds": 0}, "timeout_seconds"),
        ({"type": "command", "argv": "ls -l"}, "argv"),
    ],
)
def test_a_grader_that_can_never_run_is_refused_before_the_run(
    tmp_path: Path, commands: Preloaded, grader: Any, problem: str
) -> None:
    result = commands.run(project(tmp_path / "p", asked("t", grader)), "run")
    assert (result.code, result.out) == (2, "")
    assert problem in result.err
    assert len(result.err.splitlines()) == 1


def test_a_killed_run_leaves_no_grader_behind(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    folder = project(tmp_path / "p", asked("slow", command(f"echo $$ > {pid_file}; exec sleep 60")))
    with running(folder, "run") as process:
        wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"), "the grader runs")
        pid = int(pid_file.read_text())
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the grader is gone")
