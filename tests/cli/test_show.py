"""`mcptrials show`: tables and transcript pages, whatever servers and models wrote."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import COMMAND, SERVER, adds, asks, environment, make_project, run_folder, tiny_server

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


def test_what_a_server_wrote_to_stderr_is_shown_though_it_ended_well(tmp_path: Path, commands: Preloaded) -> None:
    start = f"echo 'no cache, slow mode' >&2; exec {shlex.join([sys.executable, str(SERVER)])}"
    # A path inside a shell's text is not seen as one that the server has to read.
    server = {"command": "sh", "args": ["-c", start], "sandbox": {"read": [str(SERVER.parent)]}}
    make_project(tmp_path, [asks("plain")], {"plain": adds("5")}, servers={"tiny": server})
    assert commands.run(tmp_path, "run", "--name", "one").code == 0
    page = commands.run(tmp_path, "show", "one", "plain").out
    assert re.search(r"server tiny ended: closed, exit code 0; it wrote to stderr:\n +no cache, slow mode\n", page)


def test_unknown_names_bring_the_nearest(folder: Path, commands: Preloaded) -> None:
    results = {name: commands.run(folder, *["show", *name.split()]) for name in ("onee", "one plane", "one hostile-9")}
    assert {result.code for result in results.values()} == {2}
    assert re.fullmatch(
        r"error: \S+/runs: there is no run 'onee'; did you mean 'one'\? there are, newest first: one\n",
        results["onee"].err,
    )
    assert "error: one: the run has no task or trial 'plane'; did you mean 'plain'" in results["one plane"].err
    assert (
        "error: one: the run has no task or trial 'hostile-9'; did you mean 'hostile'" in results["one hostile-9"].err
    )


def test_where_there_is_no_run_the_first_step_is_named(tmp_path: Path, commands: Preloaded) -> None:
    make_project(tmp_path / "p", [asks("sums")], {})
    results = {"p": commands.run(tmp_path / "p", "show"), "no project": commands.run(tmp_path, "show")}
    assert {result.code for result in results.values()} == {2}
    assert re.search(r"runs: there is no run yet; start one: mcptrials run\n", results["p"].err)
    line = (
        "there is no project file, and no folder of runs; make one with: mcptrials init, or name yours with --project"
    )
    assert results["no project"].err == f"error: mcptrials.yaml: {line}, or give a run's folder\n"


def test_runs_without_their_project_are_found_by_the_beginning_of_their_names(
    folder: Path, tmp_path: Path, commands: Preloaded
) -> None:
    for name in ("20261201-a", "20261201-b", "20261202-a"):
        shutil.copytree(run_folder(folder), tmp_path / "runs" / name)

    def said(*words: str) -> str:
        ended = commands.run(tmp_path, *words)
        assert ended.code == 2
        return ended.err.removeprefix("error: ").strip()

    there = "there are, newest first: 20261202-a, 20261201-b, 20261201-a"
    assert commands.run(tmp_path, "show", "20261202", "--json").document["data"]["run_dir"] == "runs/20261202-a"
    assert commands.run(tmp_path, "show", "--json").document["data"]["run_dir"] == "runs/20261202-a"
    assert commands.run(tmp_path, "report", "20261202", "--quiet").code == 0
    assert commands.run(tmp_path, "show", "runs/20261202", "plain", "--json").code == 0
    ambiguous = "2 runs begin with '20261201'; name one: 20261201-b, 20261201-a"
    for words in (["show"], ["report"], ["power"], ["compare", "20261202"]):
        assert said(*words, "20261201") == f"runs: {ambiguous}"
    assert said("compare", "20261202", "xyz:base") == f"runs: there is no run 'xyz'; {there}"
    assert said("show", "runs/20261202-b") == f"runs: there is no run '20261202-b'; did you mean '20261202-a'? {there}"
    assert said("show", "") == f"runs: there is no run ''; {there}"


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
    warning = f"1 transcript cannot be read, transcripts/{first.name} first: calls are missing in the tools table"
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


def test_what_is_not_ours_begins_no_line_of_its_own(tmp_path: Path, commands: Preloaded) -> None:
    forged = "1\r\n✓ forged"
    server = tiny_server(TINY_INFO=json.dumps({"name": "e", "version": forged}))
    unknown = {"calls": [{"tool": "no such\n✓ forged", "args": {"a\n✓ forged": 1}}]}
    script = {"sums": {"steps": [unknown, {"answer": "a\n✓ forged"}]}}
    folder = make_project(tmp_path, [asks("sums")], script, trials=1, servers={"tiny": server})
    results = [commands.run(folder, *words) for words in (["run", "--name", "one"], ["show"], ["show", "one", "sums"])]
    assert [result.code for result in results] == [0, 0, 0]
    for result in results:
        assert not re.search("^ *✓ forged", re.sub("^ {4}.*", "", result.out + result.err, flags=re.MULTILINE), re.M)
    assert r"server e 1\r\n✓ forged" in results[2].out


def test_a_record_of_any_depth_and_any_characters_is_shown(folder: Path, tmp_path: Path, commands: Preloaded) -> None:
    copy = tmp_path / "run"
    subprocess.run(["cp", "-r", str(run_folder(folder)), str(copy)], check=True)
    deep = "[" * 700 + "]" * 700
    for number, params in enumerate((deep, r'{"\ud800":"\udfff"}', r'"\ud800"')):
        path = next((copy / "transcripts").glob("plain-1-*"))
        told = f'{{"kind":"server_log","at_ms":{number},"server":"tiny","method":"m","params":{params}}}\n'
        path.write_text(told + path.read_text("utf-8"), "utf-8")
    page = commands.run(tmp_path, "show", "run", "plain-1", "--full")
    assert (page.code, page.err) == (0, "")
    shown = commands.run(tmp_path, "show", "run", "plain-1", "--json")
    assert (shown.code, shown.err) == (0, "")
    logged = [event["params"] for event in shown.document["data"]["events"] if event["kind"] == "server_log"]
    assert logged[:2] == ["\ud800", {"\ud800": "\udfff"}]
    assert json.dumps(logged[2]) == deep


def test_a_tasks_own_id_comes_before_the_trial_of_another(tmp_path: Path, commands: Preloaded) -> None:
    script = {"a": adds("5"), "a-1": adds("5")}
    folder = make_project(tmp_path, [asks("a"), asks("a-1")], script, trials=2)
    assert commands.run(folder, "run", "--quiet", "--name", "one").code == 0
    shown = {name: commands.run(folder, "show", "one", name).out for name in ("a-1", "a-2", "a-1-2")}
    assert [re.findall(r"\S+ · trial \d", page) for page in shown.values()] == [
        ["a-1 · trial 1"],
        ["a · trial 2"],
        ["a-1 · trial 2"],
    ]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("arms", None, "arms: Field required"),
        ("arms", [{}], "'id'"),
        ("arms", [5], "arms.0: Input should be a valid dictionary"),
        ("tasks", 5, "tasks: Input should be a valid list"),
        ("tasks", [{"id": "../x"}], "tasks.0.id: "),
        ("trials", 10**12, "trials: Input should be less than or equal to 10000"),
        ("seed", "x", "seed: "),
        ("split", "x", "split: "),
        ("run_id", None, "run_id: Field required"),
    ],
)
def test_a_damaged_manifest_is_refused_in_one_line(
    folder: Path, tmp_path: Path, commands: Preloaded, key: str, value: object, problem: str
) -> None:
    manifest = json.loads((run_folder(folder) / "manifest.json").read_bytes())
    damaged = {name: each for name, each in (manifest | {key: value}).items() if each is not None}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(damaged))
    result = commands.run(tmp_path, "show", "./run")
    assert result.code == 2, result
    assert "manifest.json: the manifest is damaged: " in result.err
    assert problem in result.err
    assert result.err.count("\n") == 1


def test_records_of_no_trial_of_the_plan_are_left_out_and_counted(
    folder: Path, tmp_path: Path, commands: Preloaded
) -> None:
    copy = tmp_path / "run"
    subprocess.run(["cp", "-r", str(run_folder(folder)), str(copy)], check=True)
    [path] = (copy / "records").glob("*")
    record = json.loads(path.read_bytes().splitlines()[0])
    strange = [record | change for change in ({"task_id": "other"}, {"arm": "00000000"}, {"trial": 99})]
    with path.open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in strange)
    result = commands.run(tmp_path, "show", "run", "--json")
    assert (result.code, result.document["data"]["totals"]["trials"]) == (0, 4)
    assert "3 records belong to no trial of the run's plan: left out" in result.document["warnings"]
    assert commands.run(tmp_path, "show", "run", "other").code == 0


def test_names_that_no_file_can_have_are_errors_in_one_line(folder: Path, tmp_path: Path, commands: Preloaded) -> None:
    long = "x" * 300
    for words in ((long,), ("a\0",), ("--project", long), ("--set", f"runs={long}")):
        result = commands.run(folder, "show", *words)
        assert (result.code, result.err.count("\n")) == (2, 1), result
