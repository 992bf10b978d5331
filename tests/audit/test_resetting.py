"""That a reset resets is proved by a task's own calls, and state that outlives its trial is found."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcptrials.audit import Line, check_project
from mcptrials.audit.resetting import reset_lines
from mcptrials.project import Project
from mcptrials.redaction import Redactor
from mcptrials.runner.building import Workshop
from mcptrials.runner.options import Silent

pytestmark = pytest.mark.anyio

SERVER = """
import json, os, pathlib, sqlite3, sys
state = pathlib.Path(sys.argv[1])
database = sqlite3.connect(sys.argv[2]) if "rows" in sys.argv else None
tasks = state.read_text().splitlines() if state.exists() else []
reads = {"readOnlyHint": True}
tools = [{"name": "list", "inputSchema": {"type": "object"}, "annotations": reads}]
tools += [{"name": "create", "inputSchema": {"type": "object"}}]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "tasks", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call" and params["name"] == "create":
        if not params["arguments"].get("title"):
            result = {"content": [{"type": "text", "text": "no title"}], "isError": True}
        else:
            tasks.append(params["arguments"]["title"])
            if database:
                database.execute("insert into tasks values (?)", [tasks[-1]])
                database.commit()
            else:
                state.write_text("\\n".join(tasks))
            number = os.getpid() if "random" in sys.argv else len(tasks)
            result = {"content": [{"type": "text", "text": f"created task_{number}"}]}
    elif method == "tools/call":
        hidden = "mute" in sys.argv
        result = {"content": [{"type": "text", "text": "" if hidden else ", ".join(tasks)}]}
    else:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
CREATES = {"tool": "create", "args": {"title": "buy milk"}}
TOOLS = ({"name": "list", "annotations": {"readOnlyHint": True}}, {"name": "create"})


def write(folder: Path, *words: str, environment: Any = None, calls: Any = (CREATES,), **server: Any) -> Project:
    task = {"id": "shop", "prompt": "Do it.", "graders": [{"type": "exact_answer", "expected": "done"}]}
    servers = {
        "tasks": {"command": "{python}", "args": ["-c", SERVER, *words], "era": "legacy", "sandbox": "off", **server}
    }
    config = {"version": 1, "servers": servers, "environment": environment or {}, "tasks": ["tasks.json"]}
    (folder / "mcptrials.yaml").write_text(json.dumps(config | {"models": ["scripted:script.json"]}))
    (folder / "tasks.json").write_text(json.dumps([task | {"reference": {"answer": "done", "calls": list(calls)}}]))
    return Project.load(folder)


async def prove(project: Project, tools: Any = None) -> list[Line]:
    with anyio.fail_after(30):
        workshop = Workshop(project, project.suite, Silent(), Redactor({}))
        try:
            return await reset_lines(project, workshop, tools or {"tasks": TOOLS})
        finally:
            workshop.places.close()


async def said(project: Project) -> list[tuple[str, str]]:
    return [(line.level, line.what) for line in await prove(project)]


async def test_state_in_the_trials_directory_is_proved_to_be_gone_in_the_next(tmp_path: Path) -> None:
    hashed = {"state_hash": [{"file": "{trial_dir}/tasks.txt"}]}
    assert await said(write(tmp_path, "{trial_dir}/tasks.txt", environment=hashed)) == [
        ("ok", "proved with task shop: it writes, which its hash shows, and the next trial begins as if it had not")
    ]
    [(level, what)] = await said(write(tmp_path, "{trial_dir}/tasks.txt"))
    assert (level, "though no hash shows it" in what) == ("ok", True)


async def test_among_tools_without_annotations_a_reference_is_taken_whose_writes_are_seen(tmp_path: Path) -> None:
    plain = {"tasks": ({"name": "list"}, {"name": "create"})}
    write(tmp_path, "{trial_dir}/tasks.txt", environment={"state_hash": [{"file": "{trial_dir}/tasks.txt"}]})
    [shop] = json.loads((tmp_path / "tasks.json").read_text())
    look = shop | {"id": "look", "reference": {"answer": "done", "calls": [{"tool": "list", "args": {}}]}}
    found = {}
    for name, tasks in {"both": [look, shop], "one": [look]}.items():
        (tmp_path / "tasks.json").write_text(json.dumps(tasks))
        found[name] = [(line.level, line.what) for line in await prove(Project.load(tmp_path), plain)]
    assert found["both"] == [
        ("ok", "proved with task shop: it writes, which its hash shows, and the next trial begins as if it had not")
    ]
    [(level, what)] = found["one"]
    assert (level, what.startswith("not proved: nothing that the calls of task look write is seen")) == ("warn", True)


async def test_state_in_a_fixed_folder_is_found_in_the_next_trial(tmp_path: Path) -> None:
    found = await said(write(tmp_path, str(tmp_path / "fixed.txt")))
    assert found == [
        ("fail", "task shop: what one trial wrote is there in the next: 'milk'"),
        ("warn", f"task shop: its calls change '{tmp_path / 'fixed.txt'}', which all trials share"),
    ]


async def test_a_reset_of_what_trials_share_is_proved_too(tmp_path: Path) -> None:
    shared = tmp_path / "fixed.txt"
    reset = {"reset": [{"command": ["rm", "-f", str(shared)]}], "state_hash": [{"file": str(shared)}]}
    assert [level for level, _ in await said(write(tmp_path, str(shared), environment=reset))] == ["warn"]


async def test_a_state_hash_that_is_another_after_a_write_is_a_failure(tmp_path: Path) -> None:
    hashed = {"state_hash": [{"file": str(tmp_path / "fixed.txt")}]}
    found = await said(write(tmp_path, str(tmp_path / "fixed.txt"), "mute", environment=hashed))
    assert found[0] == ("fail", "task shop: after its reference's calls the reset gives another state than before them")


@pytest.mark.parametrize("kind", ["directory", "sql", "command"])
async def test_every_kind_of_state_can_be_hashed(kind: str, tmp_path: Path) -> None:
    folder, database = tmp_path / "state", tmp_path / "tasks.db"
    folder.mkdir()
    (folder / "fixed.txt").touch()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("create table tasks (title text)")
    part = {
        "directory": {"file": str(folder)},
        "sql": {"sql": "select title from tasks", "url": f"sqlite:///{database}"},
        "command": {"command": ["cat", str(folder / "fixed.txt")]},
    }[kind]
    words = [str(database), "rows"] if kind == "sql" else ["-"]
    hashed = {"state_hash": [part]}
    found = await said(write(tmp_path, str(folder / "fixed.txt"), *words, "mute", environment=hashed))
    assert found[0][0] == "fail"
    assert "the reset gives another state" in found[0][1]


async def test_replies_that_count_on_are_of_note(tmp_path: Path) -> None:
    [(level, what)] = await said(write(tmp_path, "{trial_dir}/tasks.txt", "random"))
    assert level == "warn"
    assert "equal calls in two trials are answered by" in what


async def test_nothing_is_claimed_without_a_write_that_works(tmp_path: Path) -> None:
    own = "{trial_dir}/tasks.txt"
    for calls in ((), ({"tool": "list"},), ({"tool": "other"},)):
        [(level, what)] = await said(write(tmp_path, own, calls=calls))
        assert (level, what.split(":")[0]) == ("ok", "not proved")
    [(level, what)] = await said(write(tmp_path, own, calls=({"tool": "create"},)))
    assert (level, what) == ("warn", "not proved: task shop: its reference's call of 'create' failed")
    assert [level for level, _ in await said(write(tmp_path, own, writes="denied"))] == ["ok"]
    [(level, what)] = await said(write(tmp_path, own, cwd="nowhere"))
    assert (level, "cannot start" in what) == ("warn", True)


def test_what_trials_would_share_is_told_before_a_run(tmp_path: Path) -> None:
    """The proof stands with it among the lines of a check."""
    own = write(tmp_path, "{trial_dir}/tasks.txt")
    lines = check_project(own, [], offline=True, notice=lambda _: None).lines
    assert [line.level for line in lines if line.subject == "reset (base)"] == ["ok"]
    assert not [line for line in lines if line.subject == "sharing"]
    reader = {"readers": {"all": {"sql": "select 1", "url": f"sqlite:///{tmp_path}/all.db"}}}
    for project, what in (
        (write(tmp_path, "{trial_dir}/tasks.txt", "all.sqlite3"), "server 'tasks' is given 'all.sqlite3', which"),
        (write(tmp_path, "{trial_dir}/tasks.txt", environment=reader), "trials run one at a time, since they share"),
    ):
        lines = check_project(project, [], offline=True, notice=lambda _: None).lines
        [line] = [line for line in lines if line.subject == "sharing"]
        assert (line.level, line.what.startswith(what)) == ("warn", True)
