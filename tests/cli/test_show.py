"""`mcptrials show`: tables and transcript pages, whatever servers and models wrote."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import COMMAND, adds, asks, environment, make_project, run_folder

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x1b[31mred "
    "\u202egnp.exe\u202c "
    "[bold red]markup[/] [link=file:///etc/passwd]x[/link] "
    "<script>alert(1)</script> "
    "\r\x08\x00\u2028 zero\u200bwidth \U000e0041tag\n[2/2] ✓ forged 1\x9b31m"
)
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, commands: Preloaded) -> Path:
    """A run whose server, model and answers are hostile, and whose project can no longer be loaded."""
    says = {"calls": [{"tool": "say", "args": {"text": HOSTILE}}], "text": HOSTILE}
    script = {"hostile": {"steps": [says, {"answer": HOSTILE}]}, "plain": adds("5")}
    folder = make_project(tmp_path_factory.mktemp("show"), [asks("hostile"), asks("plain")], script)
    result = commands.run(folder, "run", "--name", "one")
    assert result.code == 0
    assert not OBEYED.search(result.out + result.err)
    make_project(folder, [asks("plain", grader="both kinds")], script, models=["openai:${NO_SUCH_VARIABLE}"])
    return folder


def test_a_run_shows_its_tables_and_a_trial_its_page_without_a_project_that_loads(
    folder: Path, commands: Preloaded
) -> None:
    shown = {
        name: commands.run(folder, *["show", *name.split()]) for name in ("", "one", "one plain-2", "runs/one plain")
    }
    assert {result.code for result in shown.values()} == {0}
    assert shown[""] == shown["one"]
    assert re.search(r"plain +2 of 2 +100\.0 %", shown["one"].out)
    page = shown["one plain-2"].out
    headings = ["plain · trial 2", "server tiny 1.0", "passed", "How much is 2 and 3?", "add(a=2, b=3)", "5", "grades"]
    assert [page.find(heading) >= 0 for heading in headings] == [True] * len(headings)
    assert re.search(r"file: runs/one/transcripts/plain-2-\w{8}-1\.jsonl", page)
    assert "plain · trial 1" in shown["runs/one plain"].out


def test_hostile_text_is_shown_and_obeyed_nowhere(folder: Path, commands: Preloaded) -> None:
    result = commands.run(folder, "show", "one", "hostile", "--full")
    assert result.code == 0
    assert not OBEYED.search(result.out)
    for harmless in (
        r"\x1b[2J",
        r"\u202egnp.exe",
        "[bold red]markup[/]",
        "[link=file:///etc/passwd]x[/link]",
        r"\x9b31m",
    ):
        assert result.out.count(harmless) >= 3, harmless  # in the model's text, the server's result and the answer
    assert "<script>alert(1)</script>" in result.out


def test_json_holds_the_record_and_every_event_with_hostile_text_unchanged(folder: Path, commands: Preloaded) -> None:
    result = commands.run(folder, "show", "one", "hostile", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.document["command"] == "show"
    data = result.document["data"]
    assert data["record"]["task_id"] == "hostile"
    assert [event["shown"] for event in data["events"] if event["kind"] == "tool_result"] == [HOSTILE]


def test_a_reader_that_has_seen_enough_ends_nothing_badly(folder: Path) -> None:
    for words in (["show", "one"], ["show", "one", "--json"]):
        pipe = subprocess.PIPE
        with subprocess.Popen([*COMMAND, *words], cwd=folder, env=environment(), stdout=pipe, stderr=pipe) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 0


def test_unknown_names_bring_the_nearest(folder: Path, commands: Preloaded) -> None:
    results = {name: commands.run(folder, *["show", *name.split()]) for name in ("onee", "one plane", "one hostile-9")}
    assert {result.code for result in results.values()} == {2}
    assert re.fullmatch(r"error: \S+/runs: there is no run 'onee'; did you mean 'one'\?\n", results["onee"].err)
    assert "error: one: the run has no trial 'plane'; did you mean 'plain-" in results["one plane"].err
    assert "error: one: the run has no trial 'hostile-9'; did you mean 'hostile-" in results["one hostile-9"].err


def test_where_there_is_no_run_the_first_step_is_named(tmp_path: Path, commands: Preloaded) -> None:
    make_project(tmp_path / "p", [asks("sums")], {})
    results = {"p": commands.run(tmp_path / "p", "show"), "no project": commands.run(tmp_path, "show")}
    assert {result.code for result in results.values()} == {2}
    assert re.search(r"runs: there is no run yet; start one: mcptrials run\n", results["p"].err)
    assert re.search(r"mcptrials\.yaml: the file does not exist; ", results["no project"].err)


def test_lost_and_torn_transcripts_cost_no_table(folder: Path, tmp_path: Path, commands: Preloaded) -> None:
    copy = tmp_path / "run"
    subprocess.run(["cp", "-r", str(run_folder(folder)), str(copy)], check=True)
    first, second, *_ = sorted((copy / "transcripts").glob("plain-*"))
    first.unlink()
    os.truncate(second, second.stat().st_size - 7)
    result = commands.run(tmp_path, "show", "run", "--json")
    assert result.code == 0
    data = result.document["data"]
    assert data["totals"]["passed"] == 2
    assert {tool["name"]: tool["calls"] for tool in data["tools"]} == {"say": 2, "add": 1}
    warning = f"1 transcripts cannot be read, transcripts/{first.name} first: the tools table lacks their calls"
    assert warning in result.document["warnings"]
    gone = commands.run(tmp_path, "show", "run", "plain-1")
    assert gone.code == 2
    assert re.search(r"cannot read the transcript: No such file or directory\n", gone.err)


def test_a_folder_that_is_no_run_or_of_a_later_version_is_refused_in_one_line(
    tmp_path: Path, commands: Preloaded
) -> None:
    for name, manifest in (("later", {"schema_version": 99}), ("other", [1]), ("empty", {})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "nothing").mkdir()
    names = ("./later", "./other", "./empty", "./nothing")
    results = {name: commands.run(tmp_path, *["show", name]) for name in names}
    assert {result.code for result in results.values()} == {2}
    assert "the run was made by a later version; update mcptrials" in results["./later"].err
    assert "this is no manifest of a run; restore the file" in results["./other"].err
    assert "this is no manifest of a run; restore the file" in results["./empty"].err
    assert "this is no run folder; give a run id or its path" in results["./nothing"].err
