"""`command` and `python` graders: a clear verdict, or none with its cause; nothing is left behind."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcptrials.graders.command import Command
from mcptrials.graders.python import PythonFunction
from mcptrials.protocols import GradeInput, Judgement
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome, StateValue

TASK = Task.model_validate({"id": "t", "prompt": "How many?", "graders": [{"type": "command"}]})
SLEEP_S = 60


def given(folder: Path, answer: str | None = "5", **state: Any) -> GradeInput:
    (folder / "trial").mkdir(exist_ok=True)
    read = {name: StateValue(value=value) for name, value in state.items()}
    outcome = Outcome(answer=answer, framing="tagged", state=read, stop="answer")
    return GradeInput(TASK, outcome, Transcript(), folder / "trial", folder, folder)


def shell(folder: Path, script: str, **keys: Any) -> Judgement:
    return Command(argv=("/bin/sh", "-c", script), **keys).grade(given(folder))


def python(folder: Path, body: str, answer: str | None = "5", **keys: Any) -> Judgement:
    """What a function says whose body this is."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    (folder / "checks.py").write_text(f"import asyncio, os, sys\n\ndef check(given):\n{lines}\n")
    return PythonFunction(call="./checks.py:check", **keys).grade(given(folder, answer))


def gone(pid_file: Path) -> bool:
    """Whether the process that wrote its number there is gone, within seconds."""
    pid = int(pid_file.read_text())
    deadline_s = time.monotonic() + 5
    while time.monotonic() < deadline_s:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
    return False


@pytest.mark.parametrize(
    ("script", "value", "reason"),
    [
        ("exit 0", True, "match"),
        ("exit 1", False, "wrong"),
        ("exit 2", None, "'/bin/sh' exited with code 2: it printed nothing on stderr"),
        ("echo 'error: no db' >&2; exit 3", None, "'/bin/sh' exited with code 3: error: no db"),
        ("kill -9 $$", None, "'/bin/sh' was ended by signal 9"),
        ("no-such-program-here", None, "'/bin/sh' exited with code 127"),
        ("""echo '{"passed": false, "reason": "label is missing"}'; exit 1""", False, "label is missing"),
        ("""echo looked; echo '{"passed": true, "reason": "there"}'""", True, "there"),
        ("""echo '{"value": 0.25}'; exit 1""", 0.25, "partial"),
        ("""echo '{"value": 1}'""", 1.0, "match"),
        ("""echo '{"reason": "fine"}'""", True, "fine"),
        ("""echo '{"passed": true}'; exit 1""", None, "'/bin/sh' exited with code 1, and its JSON says the opposite"),
        ("""echo '{"value": 0.5}'""", None, "'/bin/sh' exited with code 0, and its JSON says the opposite"),
        ("""echo '{"passed": true, "value": 0}'""", None, "the JSON of '/bin/sh': 'passed' and 'value' contradict"),
        ("""echo '{"passed": "yes"}'""", None, "the JSON of '/bin/sh': 'passed' is 'yes', no bool"),
        ("""echo '{"value": 7}'""", None, "the JSON of '/bin/sh': 'value' is 7, no number from 0 to 1"),
        ("""echo '{"value": NaN}'; exit 1""", False, "wrong"),  # no JSON: the code decides
        ("head -c 2000000 /dev/zero", None, "'/bin/sh' printed more than 1 MiB"),
    ],
)
def test_the_exit_code_of_a_command_decides_and_nothing_else_is_a_grade(
    tmp_path: Path, script: str, value: Any, reason: str
) -> None:  # C54
    judged = shell(tmp_path, script)
    assert (judged.value, type(judged.value)) == (value, type(value))
    assert judged.reason.startswith(reason)


def test_output_that_is_no_json_is_named_beside_the_verdict(tmp_path: Path) -> None:
    assert shell(tmp_path, "echo '<garbage'; exit 1") == Judgement(False, "wrong", "printed no JSON: <garbage")
    assert shell(tmp_path, "printf '\\377\\000'").value is True


@pytest.mark.parametrize(
    ("script", "value"), [("assert 1 == 2, 'two'", False), ("raise ValueError('boom')", None), ("import nothing", None)]
)
def test_a_script_that_crashes_has_not_failed_the_model(tmp_path: Path, script: str, value: bool | None) -> None:
    (tmp_path / "check.py").write_text(script)
    judged = Command(argv=("{python}", "{project_dir}/check.py")).grade(given(tmp_path))
    assert judged.value is value


def test_a_command_is_given_the_trial_and_none_of_our_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-graders")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    script = """
        cp "$MCPTRIALS_ANSWER_FILE" "$MCPTRIALS_OUTCOME_FILE" "$MCPTRIALS_TASK_FILE" "$MCPTRIALS_TRIAL_DIR"
        test -f "$MCPTRIALS_TRANSCRIPT_FILE" && env > "$MCPTRIALS_TRIAL_DIR/env" && pwd > "$MCPTRIALS_TRIAL_DIR/pwd"
        test -z "$(cat)"
    """
    left = given(tmp_path, 'five \n"and" ünï', labels=["a"])
    assert Command(argv=("sh", "-c", script)).grade(left).value is True
    trial = tmp_path / "trial"
    assert (trial / "answer.txt").read_text() == 'five \n"and" ünï'
    assert json.loads((trial / "outcome.json").read_text())["state"]["labels"]["value"] == ["a"]
    assert json.loads((trial / "task.json").read_text())["id"] == "t"
    assert (trial / "pwd").read_text().strip() == str(tmp_path)
    environment = (trial / "env").read_text()
    assert "sk-not-for-graders" not in environment
    assert "/somewhere" not in environment
    assert {path.name for path in tmp_path.iterdir()} == {"trial"}  # its files are gone again


def test_without_an_answer_there_is_no_answer_file(tmp_path: Path) -> None:
    grader = Command(argv=("sh", "-c", 'test -z "${MCPTRIALS_ANSWER_FILE+set}"'))
    assert grader.grade(given(tmp_path, None)).value is True


def test_a_command_without_the_trials_directory_does_not_grade(tmp_path: Path) -> None:
    left = GradeInput(TASK, given(tmp_path).outcome, Transcript(), None, tmp_path, tmp_path)
    judged = Command(argv=("true",)).grade(left)
    assert (judged.value, judged.reason.split(";")[0]) == (None, "the trial's directory is gone")


@pytest.mark.parametrize("how", ["", "setsid "])
def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path, how: str) -> None:
    script = f"{how}sh -c 'echo $$ > {tmp_path}/child; exec sleep {SLEEP_S}' & sleep {SLEEP_S}"
    judged = shell(tmp_path, script, timeout_seconds=0.5)
    assert judged == Judgement(None, "'/bin/sh' did not end within 0.5 s")
    assert gone(tmp_path / "child")


@pytest.mark.skipif(sys.platform != "linux", reason="a daemon can be found on Linux only")
def test_what_a_command_leaves_running_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    began_s = time.monotonic()
    script = (
        f"setsid sh -c 'echo $$ > {tmp_path}/child; exec sleep {SLEEP_S}' & until test -s {tmp_path}/child; do :; done"
    )
    assert shell(tmp_path, script).value is True
    assert gone(tmp_path / "child")
    assert time.monotonic() - began_s < 10


@pytest.mark.parametrize(
    ("body", "value", "reason"),
    [
        ("return given.outcome.answer == '5' and given.trial_dir.is_dir()", True, "match"),
        ("return 0.5", 0.5, "partial"),
        ("async def later():\n    await asyncio.sleep(0)\n    return True\nreturn later()", True, "match"),
        ("from mcptrials.trial import Grade\n"
         "return Grade(type='python', name='n', value=0.75, reason='most', hash='')", 0.75, "most"),
        ("print('{\"passed\": false}')\nreturn {'passed': True, 'reason': 'ok'}", True, "ok"),
        ("return 'yes'", None, "what './checks.py:check' returned is \"str 'yes'\", no bool"),
        ("return float('nan')", None, "what './checks.py:check' returned is 'float nan', no bool"),
        ("raise ValueError('boom')", None, "'./checks.py:check' ended without a grade: ValueError: boom"),
        ("os._exit(0)", None, "'./checks.py:check' ended without a grade: it printed nothing on stderr"),
    ],
)  # fmt: skip
def test_a_function_gives_a_bool_a_number_or_a_grade_and_nothing_else_is_one(
    tmp_path: Path, body: str, value: Any, reason: str
) -> None:
    judged = python(tmp_path, body)
    assert (judged.value, type(judged.value)) == (value, type(value))
    assert judged.reason.startswith(reason)


def test_a_function_that_hangs_is_ended(tmp_path: Path) -> None:
    body = f"open({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid()))\nwhile True: pass"
    judged = python(tmp_path, body, timeout_seconds=1.5)
    assert judged == Judgement(None, "'./checks.py:check' did not end within 1.5 s")
    assert gone(tmp_path / "child")


def test_a_function_that_is_changed_within_a_second_counts_as_it_is(tmp_path: Path) -> None:
    assert [python(tmp_path, f"return {number}").value for number in (0, 1)] == [0, 1]
    assert not (tmp_path / "__pycache__").exists()


def test_a_function_that_leaves_a_pipe_for_a_result_has_not_graded(tmp_path: Path) -> None:
    judged = python(tmp_path, "os.mkfifo(os.environ['TMPDIR'] + '/result.json')\nos._exit(0)")
    assert (judged.value, "ended without a grade" in judged.reason) == (None, True)


@pytest.mark.parametrize("answer", ["\ud800", "\udc80x", "a\0b"])
def test_an_answer_of_any_characters_is_graded(tmp_path: Path, answer: str) -> None:
    command = Command(argv=("/bin/sh", "-c", "test -s $MCPTRIALS_ANSWER_FILE"))
    assert command.grade(given(tmp_path, answer)).value is True


def test_a_function_keeps_nothing_from_one_trial_to_the_next(tmp_path: Path) -> None:
    body = "seen = sys.modules.setdefault('seen', [])\nseen.append(1)\nreturn len(seen) == 1"
    assert [python(tmp_path, body).value for _ in range(2)] == [True, True]


def test_a_changed_script_or_function_is_another_grader(tmp_path: Path) -> None:
    graders: list[Any] = [Command(argv=("sh", "check.sh")), PythonFunction(call="./checks.py:check")]
    for name in ("check.sh", "checks.py"):
        (tmp_path / name).write_text("# one\n")
    before = [grader.fingerprint(tmp_path) for grader in graders]
    assert before == [grader.fingerprint(tmp_path) for grader in graders]
    for name in ("check.sh", "checks.py"):
        (tmp_path / name).write_text("# two\n")
    assert all(now != then for now, then in zip([g.fingerprint(tmp_path) for g in graders], before, strict=True))
