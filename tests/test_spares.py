"""Spares: servers that are started before their trials. A run with them tells the same as one without."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.projects import DONE, call, calls, write_project

from mcptrials.project import Project
from mcptrials.record import Record
from mcptrials.rollout.spares import MAX_UNUSABLE
from mcptrials.runner import run_async
from mcptrials.store import Run

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are told apart on Linux only"),
]

SERVER = """
import json, os, pathlib, sys, time

project, own, word = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
with open(project / "starts", "a") as file:
    file.write(f"{os.getpid()} {own} {time.monotonic()}\\n")
lines = (project / "starts").read_text().splitlines()
number = 1 + [int(line.split()[0]) for line in lines].index(os.getpid())
notes = own / "notes.txt"
fate = json.loads((project / "fates.json").read_text()).get(str(number))
if fate == "refuses":
    sys.exit("no luck today")
tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("note", "notes", "mine")]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, given = message["method"], (message.get("params") or {}).get("arguments") or {}
    name = (message.get("params") or {}).get("name")
    if method == "tools/list" and fate == "floods":
        flood = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "y" * (1 << 20)}}
        for _ in range(10):
            print(json.dumps(flood), flush=True)
    if method == "initialize":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), flush=True)
        info = {"name": "spare", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": tools}
    elif name == "note":
        with notes.open("a") as file:
            file.write(given["text"])
        result = {"content": [{"type": "text", "text": "noted"}]}
    elif name == "notes":
        result = {"content": [{"type": "text", "text": notes.read_text() if notes.exists() else ""}]}
    elif name == "mine":
        result = {"content": [{"type": "text", "text": f"{os.getpid()} {own}"}]}
    else:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    if method == "tools/list" and fate == "dies":
        sys.exit(3)
    if method == "tools/list" and fate == "meddles":
        time.sleep(0.2)
        (own / "fixture.txt").write_text("meddled with")
with (own / "notes.txt").open("a") as file:
    file.write(", flushed")
"""
"""Writes what it was told, and a last word when it is closed. What it does wrong depends on which start it is."""
SLOW = calls(call("note", text="milk")) | {"delay_ms": 700}
PLAY = (calls(call("note", text="milk")), calls(call("mine")), DONE)


@dataclass(frozen=True)
class Started:
    """A start of the server."""

    pid: int
    folder: str


def servers(**keys: Any) -> dict[str, Any]:
    args = ["-c", SERVER, "{project_dir}", "{trial_dir}", "word"]
    return {"faulty": {"command": "{python}", "args": args, "era": "legacy", "sandbox": "off", **keys}}


def project(
    folder: Path,
    *steps: Mapping[str, Any],
    fates: Mapping[int, str] | None = None,
    isolation: str = "spare",
    **keys: Any,
) -> Project:
    """Eight trials, two at a time; `fates` say what is wrong with a start, of which the first is that of the check."""
    folder.mkdir(exist_ok=True)
    (folder / "fates.json").write_text(json.dumps(fates or {}))
    (folder / "fixture.txt").write_text("as it was")
    environment = {
        "files": {"fixture.txt": "{trial_dir}/fixture.txt"},
        "readers": {"notes": {"file": "{trial_dir}/notes.txt"}},
    }
    settings: dict[str, Any] = {
        "servers": servers(isolation=isolation),
        "environment": environment,
        "trials": 8,
        "concurrency": 2,
    }
    written = write_project(folder, steps or PLAY, **(settings | keys))
    check = {"type": "state_check", "query": "notes", "expected": "milk, flushed"}
    answer = {"type": "exact_answer", "expected": "done"}
    (folder / "tasks.json").write_text(json.dumps([{"id": "task", "prompt": "Do it.", "graders": [answer, check]}]))
    return Project.load(written.path)


async def play(project: Project) -> Run:
    with anyio.fail_after(60):
        return (await run_async(project)).run


def starts(folder: Path) -> list[Started]:
    lines = (folder / "starts").read_text().splitlines()
    return [Started(int(pid), own) for pid, own, _ in map(str.split, lines)]


def alive(started: Sequence[Started]) -> list[int]:
    return [each.pid for each in started if Path(f"/proc/{each.pid}").exists()]


def left(started: Sequence[Started]) -> list[str]:
    return [each.folder for each in started if Path(each.folder).exists()]


def served(run: Run) -> list[str]:
    """Process and directory of the server, by trial."""
    found = [run.transcript(record).calls[1].answer for record in run.records()]
    return [each.shown for each in found if each]


def verdicts(records: Sequence[Record]) -> list[tuple[str, str, str | None]]:
    return [(each.verdict, each.blame, each.cause) for each in records]


def frames(run: Run, record: Record) -> list[Any]:
    (path,) = run.folder.glob(f"wire/{Path(record.transcript).stem}.*")
    return [json.loads(json.loads(line)["frame"]) for line in path.read_text().splitlines()]


def began_ms(run: Run, record: Record) -> float:
    """When the server was first spoken to, since its trial began; negative for one that was started ahead."""
    (path,) = run.folder.glob(f"wire/{Path(record.transcript).stem}.*")
    return float(json.loads(path.read_text().splitlines()[0])["ms"])


TARGET = "{trial_dir}/other.txt"
PASSED = ("passed", "none", None)


async def test_a_run_with_spares_tells_the_same_as_one_that_spawns(tmp_path: Path) -> None:
    told = {}
    for isolation in ("spawn", "spare"):
        run = await play(project(tmp_path / isolation, isolation=isolation))
        records = run.records()
        assert verdicts(records) == [PASSED] * 8
        told[isolation] = [
            (
                [frame.get("method") or frame.get("id") for frame in frames(run, record)],
                [event.kind for event in run.transcript(record).events],
                record.server_version,
                record.server_faults,
            )
            for record in records
        ]
    assert told["spare"] == told["spawn"]


async def test_each_process_serves_one_trial_in_a_place_of_its_own(tmp_path: Path) -> None:
    run = await play(project(tmp_path))
    assert len(set(served(run))) == 8
    began = starts(tmp_path)
    assert {f"{each.pid} {each.folder}" for each in began} >= set(served(run))
    assert not alive(began)
    assert not left(began)


@pytest.mark.parametrize("fate", ["dies", "meddles", "floods"])
async def test_a_spare_that_is_not_as_it_was_made_is_replaced(fate: str, tmp_path: Path) -> None:
    """The sixth and seventh start are those of spares that wait for the fifth and sixth trial."""
    run = await play(project(tmp_path, SLOW, *PLAY[1:], fates={6: fate, 7: fate}))
    records = run.records()
    assert verdicts(records) == [PASSED] * 8
    assert all(record.server_faults == () for record in records)
    began = starts(tmp_path)
    assert not {f"{each.pid} {each.folder}" for each in began[5:7]} & set(served(run))
    assert not alive(began)


async def test_places_that_are_never_of_use_are_made_no_longer(tmp_path: Path) -> None:
    fates = dict.fromkeys(range(2, 100), "floods")
    run = await play(project(tmp_path, fates=fates, trials=12))
    assert verdicts(run.records()) == [PASSED] * 12
    assert len(starts(tmp_path)) <= 1 + 12 + MAX_UNUSABLE + 3


async def test_most_trials_find_a_server_that_runs(tmp_path: Path) -> None:
    run = await play(project(tmp_path, SLOW, *PLAY[1:]))
    assert [began_ms(run, record) < 0 for record in run.records()] == [False] * 2 + [True] * 6


async def test_a_start_that_fails_ahead_is_told_as_one_that_fails_in_its_trial(tmp_path: Path) -> None:
    """Another try would hide how often the server does not start."""
    for isolation in ("spawn", "spare"):
        # One start ahead may turn out not to be needed, of three not all.
        fates = dict.fromkeys((6, 7, 8), "refuses")
        run = await play(project(tmp_path / isolation, isolation=isolation, fates=fates))
        failed = [record for record in run.records() if record.verdict == "invalid"]
        assert set(verdicts(failed)) == {("invalid", "server", "server_start")}
        assert "no luck today" in (failed[0].error or "")
        assert [event.kind for event in run.transcript(failed[0]).events] == ["server_exited", "error"]
        assert [frame.get("method") for frame in frames(run, failed[0])] == ["initialize"]


async def test_state_in_the_process_of_a_spare_is_read_on_the_connection_that_its_host_left(tmp_path: Path) -> None:
    reading = {"readers": {"notes": {"tool": "notes", "value": "text"}}}
    made = project(tmp_path, environment=reading, trials=5)
    check = {"type": "state_check", "query": "notes", "expected": "milk"}
    (tmp_path / "tasks.json").write_text(json.dumps([{"id": "task", "prompt": "Do it.", "graders": [check]}]))
    run = await play(Project.load(made.path))
    assert verdicts(run.records()) == [PASSED] * 5
    for record in run.records():
        methods = [frame.get("method") for frame in frames(run, record)]
        assert (methods.count("initialize"), methods.count("tools/call")) == (1, 3)


async def test_spares_stand_beside_servers_that_are_opened_in_the_trial(tmp_path: Path) -> None:
    """Each kind of task has places of its own, and directories are kept as they are asked to be."""
    here = servers(isolation="spare") | {"second": servers(isolation="spawn")["faulty"]}
    steps = (calls(call("faulty__note", text="milk")), calls(call("second__mine")), DONE)
    made = project(tmp_path, *steps, servers=here, trials=4, keep_trial_dirs=True)
    check = {"type": "state_check", "query": "notes", "expected_contains": "milk"}
    tasks: list[dict[str, Any]] = [
        {"id": "task", "prompt": "Do it.", "graders": [check]},
        {"id": "other", "prompt": "Do it.", "graders": [check], "environment": {"files": {"fixture.txt": TARGET}}},
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    script = {"version": 1, "tasks": {task["id"]: {"steps": steps} for task in tasks}}
    (tmp_path / "script.json").write_text(json.dumps(script))
    run = await play(Project.load(made.path))
    records = run.records()
    assert verdicts(records) == [PASSED] * 8
    kept = {record.task_id: Path(record.trial_dir or "") for record in records}
    assert (kept["other"] / "other.txt").is_file()
    assert not (kept["task"] / "other.txt").exists()
    assert len({record.trial_dir for record in records}) == 8
    assert not alive(starts(tmp_path))
    for folder in {Path(record.trial_dir or "").parent for record in records}:
        shutil.rmtree(folder)


async def test_a_reset_that_fails_ahead_is_the_trials_failure(tmp_path: Path) -> None:
    """It counts how often it was made, also in the checks before the run."""
    count = "echo x >> count; test $(wc -l < count) -lt 8 # {trial_dir}"
    reset = {"reset": [{"command": ["sh", "-c", count]}], "readers": {"notes": {"file": "notes.txt"}}}
    made = project(tmp_path, environment=reset)
    answer = {"type": "exact_answer", "expected": "done"}
    (tmp_path / "tasks.json").write_text(json.dumps([{"id": "task", "prompt": "Do it.", "graders": [answer]}]))
    run = await play(Project.load(made.path))
    failed = [record for record in run.records() if record.verdict == "invalid"]
    assert 3 <= len(failed) <= 6
    assert set(verdicts(failed)) == {("invalid", "harness", "reset")}
    assert not left(starts(tmp_path))
