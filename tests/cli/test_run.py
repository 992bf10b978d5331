"""`mcptrials run`, by the real command line: what it prints, writes and answers."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import (
    COMMAND,
    SERVER,
    USAGE,
    Ended,
    adds,
    asks,
    ended,
    environment,
    make_project,
    mcptrials,
    records,
    run_folder,
    run_folders,
    running,
    wait_until,
)

from mcptrials.cli.group import TABLE

ABSTAIN = {"steps": [{"answer": "cannot", "usage": USAGE}]}
LONG = "x" * 300
ERROR = re.compile(r"error: [^\n]+\n")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks that call a tool, of which one always fails, and one that must not; by two models."""
    tasks = [asks("sums"), asks("wrong", expected="6"), asks("impossible", expected="cannot", expects="abstain")]
    script = {"sums": adds("5"), "wrong": adds("5"), "impossible": ABSTAIN}
    folder = make_project(tmp_path_factory.mktemp("run"), tasks, script, trials=3)
    (folder / "other.yaml").write_text((folder / "script.yaml").read_text())
    return folder


@pytest.fixture(scope="module")
def finished(project: Path) -> Ended:
    return mcptrials(
        project, "run", "--name", "two", "--model", "scripted:script.yaml", "--model", "scripted:other.yaml"
    )


def test_progress_goes_to_stderr_and_begins_with_the_plan(finished: Ended) -> None:
    assert finished.code == 0
    lines = finished.err.splitlines()
    assert lines[0] == "starting tiny (base)"
    assert re.fullmatch(r"sandbox of tiny: (Landlock \(version \d+\) and limits|limits only)", lines.pop(1))
    assert lines[1:5] == [
        "scripted, not a language model",
        "run two · 3 tasks, 2 arms, 18 trials · 8 at a time",
        "  arm base · loop · scripted:script.yaml",
        "  arm base · loop · scripted:other.yaml",
    ]
    assert lines[5].startswith("  limits per trial: 20 turns, 40 calls, 200000 tokens, 300 s")
    assert len(lines) == 6 + 18
    assert sum("✗ wrong" in line and "(wrong_answer)  1 call " in line for line in lines) == 6
    assert {line.split("]")[0] for line in lines[6:]} == {f"[{n}/18" for n in range(1, 19)}


def test_tables_go_to_stdout_per_task_class_tool_and_arm_with_totals_and_suspects(finished: Ended) -> None:
    out = finished.out
    assert re.search(r"sums +base · loop · scripted:script\.yaml +3 of 3 +100\.0 % +1 ", out)
    assert re.search(r"wrong +base · loop · scripted:other\.yaml +0 of 3 +0\.0 % +1 .* wrong_answer 3", out)
    assert re.search(r"abstain +base · loop · scripted:script\.yaml +1 +3 of 3 +100\.0 %", out)
    assert re.search(r"add +base · loop · scripted:script\.yaml +6 +0 +0 ", out)
    assert re.search(
        r"base · loop · scripted:script\.yaml +success +66\.7 % +\[[\d.]+, [\d.]+\] +33\.3 +3 +6 of 9 +2[.\d]* +0", out
    )
    assert re.search(r"\n +pass@3 +66\.7 %.*\n +pass\^3 +66\.7 %", out)
    assert "18 trials · 12 tool calls, 0 tool errors, 0 protocol errors · 3,000 tokens in, 300 out" in out
    assert "6 failed: wrong_answer (blame: agent)" in out
    [first, *_] = [number for number, line in enumerate(out.splitlines()) if line.startswith("Tasks")]
    assert "? suspect task wrong: no trial passed: check the task and its graders" in out.splitlines()[:first]
    assert "scripted, not a language model" in out


def test_the_screen_ends_with_paths_that_lead_on(project: Path, finished: Ended, commands: Preloaded) -> None:
    assert "transcripts: runs/two/transcripts\n" in finished.out
    [example] = re.findall(r"read one: +mcptrials (show runs/two wrong)\n", finished.out)
    page = commands.run(project, *example.split())
    assert page.code == 0
    assert "How much is 2 and 3?" in page.out


def test_output_that_is_no_terminal_is_plain_and_in_its_encoding_even_if_colour_is_forced(project: Path) -> None:
    variables = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "PYTHONIOENCODING": "ascii"}
    result = mcptrials(project, "run", "--only", "sums", "--trials", "1", **variables)
    assert result.code == 0
    assert "\x1b" not in result.out + result.err
    assert r"\u2713 sums" in result.err


def test_the_run_folder_holds_manifest_records_transcripts_wire_and_summary(project: Path, finished: Ended) -> None:
    assert finished.code == 0
    run = project / "runs" / "two"
    assert {path.name for path in run.iterdir()} == {
        "manifest.json", "records", "transcripts", "wire", "summary.json", "lock"
    }  # fmt: skip
    names = {f"{r['task_id']}-{r['trial']}-{r['arm']}-1" for r in records(run)}
    assert len(names) == 18
    assert {path.stem for path in run.glob("transcripts/*")} == names
    assert {path.name.removesuffix(".tiny.jsonl") for path in run.glob("wire/*")} == names
    assert json.loads((run / "summary.json").read_text())["complete"] is True


def test_flags_choose_tasks_models_trials_and_name_and_json_is_one_document_and_nothing_else(project: Path) -> None:
    words = ["--only", "*s*,wr*,!expects:abstain", "--model", "scripted:other.yaml", "--trials", "5", "--name", "mine"]
    result = mcptrials(project, "run", "--json", *words)
    assert (result.code, result.err) == (0, "")
    document = result.document
    assert {key: document[key] for key in document if key not in ("data", "warnings")} == {
        "schema_version": 1,
        "command": "run",
        "ok": True,
        "exit_code": 0,
        "error": None,
    }
    data = document["data"]
    assert {"run_id", "run_dir", "complete", "arms", "tasks", "tools", "suspects"} <= data.keys()
    assert {
        "arm", "label", "n_tasks", "n_trials", "passed", "failed", "invalid", "pending", "rate", "se", "ci_low",
        "ci_high", "n_eff", "method", "pass_at", "pass_hat", "distinct_trials",
    } <= data["arms"][0].keys()  # fmt: skip
    assert {"task_id", "arm", "passed", "failed", "invalid", "rate"} <= data["tasks"][0].keys()
    assert {"name", "calls", "errors", "ms_p50", "ms_p95", "result_tokens_p50"} <= data["tools"][0].keys()
    assert [suspect["task_id"] for suspect in data["suspects"] if suspect["kind"] == "never_passed"] == ["wrong"]
    assert document["warnings"] == data["warnings"]
    assert json.loads((Path(data["run_dir"]) / "summary.json").read_text()) == data

    found = records(project / "runs" / "mine")
    assert {r["model"] for r in found} == {"scripted:other.yaml"}
    assert sorted((r["task_id"], r["trial"]) for r in found) == [
        (t, n) for t in ("sums", "wrong") for n in (1, 2, 3, 4, 5)
    ]


def on_terminal(folder: Path, *words: str, typed: str = "", **variables: str) -> tuple[int, str]:
    """A command whose standard streams are a terminal: its exit code and all that it showed."""
    terminal, end = pty.openpty()
    os.write(terminal, typed.encode())
    env = environment(TERM="xterm-256color", COLUMNS="120", **variables)
    with subprocess.Popen([*COMMAND, *words], cwd=folder, env=env, stdin=end, stdout=end, stderr=end) as process:
        os.close(end)
        shown = b""
        while chunk := read_terminal(terminal):
            shown += chunk
        code = process.wait(timeout=60)
    os.close(terminal)
    return code, shown.decode()


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the last process that wrote to it has gone
        return b""


COLOURS = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-9]|4[0-9]|9[0-7]|10[0-7])(?:;[\d;]*)?m")


def test_a_terminal_gets_colour_and_a_bar_and_no_question_for_a_scripted_model(project: Path) -> None:
    code, shown = on_terminal(project, "run", "--only", "sums")
    assert code == 0
    assert COLOURS.search(shown)
    assert "━" in shown
    assert "3 passed, 0 failed, 0 not scored" in shown
    assert "[y/N]" not in shown


def test_no_color_takes_every_colour_from_a_terminal(project: Path, finished: Ended) -> None:
    assert finished.code == 0
    code, shown = on_terminal(project, "show", "two", NO_COLOR="1")
    assert code == 0
    assert "3 of 3" in shown
    assert not COLOURS.search(shown)


def test_a_paid_model_is_asked_nothing_before_the_user_said_yes(tmp_path: Path) -> None:
    model = {"model": "openai:dear", "base_url": "http://192.0.2.1/v1", "api_key": "sk-unused-5Hk2"}
    folder = make_project(tmp_path, [asks("sums")], {}, models=[model])
    code, shown = on_terminal(folder, "run", typed="n\n")
    assert code == 2
    assert "Run 2 trials? [y/N]" in shown
    assert "asking openai:dear" not in shown
    assert "error: not confirmed: nothing was run; use --yes to run without a question" in shown
    assert not run_folders(folder)


def test_the_default_is_train_and_held_out_tasks_are_logged_whenever_they_are_run_or_shown(
    tmp_path: Path, commands: Preloaded
) -> None:
    tasks = [asks("seen"), asks("unseen", split="held_out")]
    folder = make_project(tmp_path / "p", tasks, {"seen": adds("5"), "unseen": adds("5")}, trials=1)
    ledger = folder / "held_out_looks.jsonl"

    plain = commands.run(folder, "run", "--quiet", "--name", "plain")
    assert (plain.code, plain.err) == (0, "")
    assert "1 of 1" in plain.out
    assert [r["task_id"] for r in records(folder / "runs" / "plain")] == ["seen"]
    assert not ledger.exists()

    assert commands.run(folder, "run", "--quiet", "--name", "look", "--split", "held_out").code == 0
    assert [r["task_id"] for r in records(folder / "runs" / "look")] == ["unseen"]
    assert commands.run(tmp_path, "show", "p/runs/look").code == 0
    looks = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [(look["command"], look["run_id"]) for look in looks] == [("run", "look"), ("show", "look")]


def test_a_fault_before_the_first_trial_is_one_line_with_cause_and_next_step(
    tmp_path: Path, commands: Preloaded
) -> None:
    def tiny(*arguments: str, command: str = "{python}", **keys: Any) -> dict[str, Any]:
        return {"servers": {"tiny": {"command": command, "args": list(arguments), **keys}}}

    def code(text: str) -> dict[str, Any]:
        return tiny("-c", text) | {"limits": {"connect_seconds": 1.5}}

    (tmp_path / "file").write_text("in the way")
    (tmp_path / "empty.yaml").write_text("tasks: {}")
    cases: dict[str, tuple[dict[str, Any], list[str], str]] = {
        "wrong key": ({"trails": 3}, [], r"mcptrials\.yaml:1: trails: unknown key 'trails'; did you mean 'trials'\?"),
        "wrong value": ({"trials": "x"}, [], r"mcptrials\.yaml:1: trials: .*number, not 'x'"),
        "no variable": (tiny("${NO_SUCH}"), [], r"args\[0\]: the environment variable 'NO_SUCH' is not set; export"),
        "no fixture": ({"environment": {"files": {"no.db": "{trial_dir}/x"}}}, [], r"'no\.db' does not exist; check"),
        "no tasks": ({"tasks": ["no*.yaml"]}, [], r"no task file matches 'no\*\.yaml'; "),
        "runs in a file": ({"runs": str(tmp_path / "file")}, [], r"file: runs cannot be written .* is a file; check"),
        "runs in a system": ({"runs": "/proc/no/runs"}, [], r"/proc/no/runs.*: .*; check 'runs'"),
        "no command": (
            tiny(command="no-such-command"),
            [],
            r"1: servers\.tiny\.command: .*cannot start 'no-such-command'.*; 'no-such-command' is not on the PATH",
        ),
        "exits at once": (
            code("import sys; sys.exit('out of luck')"),
            [],
            r"'tiny' .* its stderr says: out of luck; run",
        ),
        "prints garbage": (code("print('garbage', flush=True); open(0).read()"), [], r"server 'tiny' .*; run its"),
        "says nothing": (
            code("import sys; list(sys.stdin)"),
            [],
            r"server 'tiny' .* within 1\.5 s.*; run its command by hand",
        ),
        "may write": (tiny(str(SERVER), "--writes"), [], r"no tool is shown .* readOnlyHint.*; add 'environment: "),
        "failed preflight": ({"preflight": [["false"]]}, [], r"preflight command 'false' exited with code 1"),
        "no script": ({}, ["--model", "scripted:no.yaml"], r"no\.yaml: the file does not exist; check the path"),
        "empty script": (
            {},
            ["--model", "scripted:../empty.yaml"],
            r"the script says nothing on task 'sums'.*; add the",
        ),
        "no adapter": ({}, ["--model", "opnai:x"], r"there is no model 'opnai'; did you mean 'openai'\?"),
        "no such tasks": ({}, ["--only", "zzz"], r"--only 'zzz' picks no train task; ids begin with: sums"),
        "no held-out task": ({}, ["--split", "held_out"], r"the suite has no held_out task; give a task"),
        "name is a path": ({}, ["--name", "../x"], r"'\.\./x' is no name for a run; use letters"),
        "no such run": ({}, ["--resume", "20300101"], r"there is no run '20300101'; start one: mcptrials run"),
        "a folder for tasks": ({"tasks": ["."]}, [], r"tasks\[0\]: '\.': it is no pattern of files"),
        "runs of no system": ({"runs": "a\0"}, [], r"mcptrials\.yaml:1: runs: a path holds no NUL character"),
        "runs too long": ({"runs": LONG}, [], r"cannot make the run's folder: File name too long; check 'runs'"),
        "project too long": ({}, ["--project", LONG], r"cannot read the file: File name too long; check the path"),
        "script too long": ({}, ["--model", f"scripted:{LONG}"], r"cannot read the script: File name too long; check"),
        "run too long": ({}, ["--resume", LONG], r"runs cannot be looked for: File name too long; check the name"),
        "fixture of no system": (
            {"environment": {"files": {"tasks.yaml": "{trial_dir}/a\0"}}},
            [],
            r"cannot copy the fixtures: embedded null byte; mend",
        ),
        "too many trials": ({}, ["--trials", "10001"], r"10,001 trials per task are more than 10,000; lower --trials"),
        "too large a plan": (
            {"trials": 10_000, "models": [f"scripted:{'./' * n}script.yaml" for n in range(21)]},
            [],
            r"the plan has 210,000 trials, more than 200,000; lower 'trials', or choose",
        ),
        "wrong flag": ({}, ["--bogus"], r"No such option '--bogus'; see --help"),
        "wrong number": ({}, ["--trials", "0"], r"'--trials': 0 is not in the range x>=1; see --help"),
    }
    for name, (keys, words, message) in cases.items():
        folder = make_project(tmp_path / name, [asks("sums")], {"sums": adds("5")}, **keys)
        result = commands.run(folder, "run", "--quiet", *words)
        assert (result.code, result.out) == (2, ""), (name, result.err)
        assert ERROR.fullmatch(result.err), (name, result.err)
        assert re.search(message, result.err), (name, result.err)
        assert not run_folders(folder), name


def test_an_error_is_a_json_document_too_also_for_flags_that_do_not_exist(tmp_path: Path) -> None:
    folder = make_project(tmp_path, [asks("sums")], {}, trails=3)
    cases = {
        "unknown key 'trails'": ["run", "--json"],
        "No such option '--bogus'": ["run", "--bogus", "--json"],
        f"No such command 'rnu'; commands: {', '.join(TABLE)}": ["rnu", "--json"],
    }
    for what, words in cases.items():
        result = mcptrials(folder, *words)
        assert (result.code, result.err) == (2, "")
        document = result.document
        assert (document["ok"], document["exit_code"], document["data"]) == (False, 2, None)
        assert document["error"]["what"] == what
        assert document["error"]["hint"]


def test_a_taken_name_is_refused_before_anything_starts(project: Path, finished: Ended, commands: Preloaded) -> None:
    assert finished.code == 0
    result = commands.run(project, "run", "--name", "two")
    assert result.code == 2
    assert re.fullmatch(r"error: \S+/runs/two: a run of that name exists; take another --name\n", result.err)


def test_nothing_scored_gives_no_percentage_and_exit_code_3(tmp_path: Path, commands: Preloaded) -> None:
    dead_key = {"steps": [{"error": {"status": 401}}]}
    folder = make_project(tmp_path, [asks("sums"), asks("more")], {"sums": dead_key, "more": dead_key})
    result = commands.run(folder, "run")
    assert result.code == 3
    assert not re.search(r"\d\.\d %", result.out)
    assert "0 of 4 trials scored: no rate can be given" in result.out
    assert "4 not scored: auth (blame: provider)" in result.out
    assert f"go on with: mcptrials run --resume runs/{run_folder(folder).name}" in result.err


def test_too_much_not_scored_is_incomplete_and_shows_both_bounds(tmp_path: Path, commands: Preloaded) -> None:
    refused = {"steps": [{"error": {"status": 400}}]}
    folder = make_project(tmp_path, [asks("sums"), asks("more")], {"sums": adds("5"), "more": refused})
    result = commands.run(folder, "run", "--json")
    assert (result.code, result.err) == (3, "")
    document = result.document
    assert document["ok"] is False
    assert document["error"]["what"] == "2 of 4 trials are not scored, more than max_invalid allows"
    assert document["error"]["hint"].startswith("go on with: mcptrials run --resume runs/")
    [arm] = document["data"]["arms"]
    assert (arm["rate"], arm["rate_if_failed"], arm["rate_if_passed"]) == (1.0, 0.5, 1.0)


def slow_project(folder: Path, delay_ms: int) -> Path:
    """Eight slow trials, two at a time."""
    return make_project(folder, [asks("slow")], {"slow": adds("5", delay_ms)}, trials=8, concurrency=2)


def wait_for_flight(folder: Path) -> None:
    wait_until(lambda: len(list(folder.glob("runs/*/wire/*"))) >= 2, "two trials are in flight")


def test_one_ctrl_c_finishes_what_is_in_flight_and_says_how_to_go_on(tmp_path: Path, commands: Preloaded) -> None:
    folder = slow_project(tmp_path, delay_ms=600)
    with running(folder, "run") as process:
        wait_for_flight(folder)
        process.send_signal(signal.SIGINT)
        result = ended(process)
    assert result.code == 3
    assert re.search(r"no new trial begins; [12] in flight are finished\. Ctrl-C again cancels them", result.err)
    found = records(run_folder(folder))
    assert 2 <= len(found) < 8
    assert {r["verdict"] for r in found} == {"passed"}
    last = f"error: stopped before the end; go on with: mcptrials run --resume runs/{run_folder(folder).name}"
    assert result.err.splitlines()[-1] == last
    assert "of 2" in result.out or "of 3" in result.out

    slow_project(folder, delay_ms=0)
    resumed = commands.run(folder, *last.split("mcptrials ")[1].split(), "--json")
    assert resumed.code == 0
    assert resumed.document["data"]["totals"]["passed"] == 8


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_second_ctrl_c_or_a_term_cancels_what_is_in_flight(
    tmp_path: Path, commands: Preloaded, asked_before: bool
) -> None:
    folder = slow_project(tmp_path, delay_ms=20_000)
    command = commands.start(folder, "run")
    wait_for_flight(folder)
    if asked_before:
        os.kill(command.pid, signal.SIGINT)
        wait_until(lambda: "Ctrl-C again cancels them" in command.errors, "the first signal is understood")
    os.kill(command.pid, signal.SIGINT if asked_before else signal.SIGTERM)
    result = command.ended()
    assert result.code == 3
    assert re.search(r"cancelling [12] trials? in flight, owed again", result.err)
    found = records(run_folder(folder))
    assert {(r["verdict"], r["cause"], r["blame"]) for r in found} >= {("invalid", "cancelled", "none")}
    assert len(found) < 8
    assert "go on with: mcptrials run --resume" in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_first_trial_leaves_no_folder_and_no_server(
    tmp_path: Path, commands: Preloaded, number: signal.Signals
) -> None:
    mark = tmp_path / "server-pid"
    program = f"import os, pathlib; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); open(0).read()"
    servers = {"tiny": {"command": "{python}", "args": ["-c", program], "sandbox": {"write": [str(tmp_path)]}}}
    folder = make_project(tmp_path / "p", [asks("sums")], {"sums": adds("5")}, servers=servers)
    command = commands.start(folder, "run")
    wait_until(lambda: mark.exists() and bool(mark.read_text()), "the server runs")
    os.kill(command.pid, number)
    result = command.ended()
    assert result.code == 3
    assert result.err.splitlines()[-1] == "error: stopped; what was recorded is kept"
    assert not run_folders(folder)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_command_that_ignores_ctrl_c_in_the_background_stops_when_asked_to_terminate(tmp_path: Path) -> None:
    mark = tmp_path / "server-pid"
    program = f"import os, pathlib; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); open(0).read()"
    servers = {"tiny": {"command": "{python}", "args": ["-c", program], "sandbox": {"write": [str(tmp_path)]}}}
    folder = make_project(tmp_path / "p", [asks("sums")], {"sums": adds("5")}, servers=servers)
    ignoring = ["/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh", *COMMAND, "run"]
    with subprocess.Popen(ignoring, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: mark.exists() and bool(mark.read_text()), "the server runs")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 3
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == "error: stopped; what was recorded is kept"
    assert not run_folders(folder)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_reader_of_progress_that_goes_away_does_not_end_the_run(project: Path) -> None:
    words = ["run", "--only", "sums", "--trials", "6", "--name", "unheard"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, *words], cwd=project, env=environment(), stdout=pipe, stderr=pipe) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        process.stderr.readline()
        process.stderr.close()
        out = process.stdout.read().decode()
        assert process.wait(timeout=60) == 0
    assert "6 of 6" in out
    assert len(records(project / "runs" / "unheard")) == 6


def test_trials_of_the_command_line_hold_for_tasks_with_a_number_of_their_own(tmp_path: Path) -> None:
    tasks = [asks("many", trials=7), asks("usual")]
    folder = make_project(tmp_path / "p", tasks, {"many": adds("5"), "usual": adds("5")}, trials=2)
    assert mcptrials(folder, "run", "--name", "asked", "--trials", "1", "--quiet").code == 0
    assert [record["trial"] for record in records(folder / "runs" / "asked")] == [1, 1]
    resumed = mcptrials(folder, "run", "--resume", "asked")
    assert (resumed.code, "owes no trial" in resumed.err) == (0, True)
    assert mcptrials(folder, "run", "--name", "own", "--quiet").code == 0
    assert len(records(folder / "runs" / "own")) == 9


def test_what_a_reader_in_python_prints_does_not_spoil_the_document(tmp_path: Path) -> None:
    graders = [{"type": "state_check", "query": "the answer", "expected": "42"}]
    task = {"id": "t", "prompt": "p", "graders": graders, "noop_should_pass": True}
    readers = {"the answer": {"python": "./look.py:look"}}
    folder = make_project(tmp_path / "p", [task], {"t": adds("5")}, environment={"readers": readers}, trials=1)
    (folder / "look.py").write_text("def look(place):\n    print('looking')\n    return 42\n")
    result = mcptrials(folder, "run", "--json")
    assert (result.code, result.document["data"]["totals"]["passed"]) == (0, 1)
    assert "looking" in result.err
