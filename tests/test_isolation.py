"""Trials apart: each has its own place and its own session, and what they would share is not used side by side."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.projects import DONE, call, calls, play, write_project

from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.runner import run_async
from mcptrials.runner.options import Silent

pytestmark = pytest.mark.anyio

LISTENING = """
import json, os, pathlib, sys
word = sys.argv[1]

def looked():
    '''Every file that can be reached from where the server stands, and what it is told of its surroundings.'''
    here = pathlib.Path.cwd()
    for folder in (here, *here.parents[:-1]):
        yield str(folder)
        try:
            yield from map(str, folder.iterdir())
        except PermissionError:
            pass
    for folder, _, files in os.walk(here):
        yield from (os.path.join(folder, file) for file in files)
    yield from (f"{key}={value}" for key, value in os.environ.items())
    try:
        yield pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_text()
    except OSError:
        pass

tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("look", "homes")]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "looking", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": tools}
    elif params.get("name") == "look":
        result = {"content": [{"type": "text", "text": "\\n".join(looked())}]}
    else:
        names = ("HOME", "TMPDIR", "TEMP", "TMP", *(f"XDG_{x}_HOME" for x in ("CONFIG", "DATA", "STATE", "CACHE")))
        homes = {name: os.environ[name] for name in names} | {"~": os.path.expanduser("~"), "dir": word}
        import tempfile
        homes["tempfile"] = tempfile.gettempdir()
        result = {"content": [{"type": "text", "text": json.dumps(homes)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def looking(**keys: Any) -> dict[str, Any]:
    return {"looking": {"command": "{python}", "args": ["-c", LISTENING, "{trial_dir}"], "era": "legacy", **keys}}


async def test_every_directory_that_a_server_is_told_to_keep_things_in_is_its_trials(tmp_path: Path) -> None:
    played = await play(tmp_path, calls(call("homes")), DONE, servers=looking())
    homes = json.loads(played.shown[0])
    trial_dir = homes.pop("dir")
    assert len(homes) == 10
    assert all(home.startswith(f"{trial_dir}/") for home in homes.values())


UNPRIVILEGED = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
"""Root without the right to read what it may not, as for everybody else."""


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may list everything")
async def test_a_server_finds_no_other_trial_no_run_and_no_answers_from_where_it_stands(tmp_path: Path) -> None:
    """With the working directory of its trial; the tasks, and with them the answers, are elsewhere."""
    command = [*(UNPRIVILEGED if os.geteuid() == 0 else ()), "{python}", "-c", LISTENING, "{trial_dir}"]
    servers = {"looking": {"command": command[0], "args": command[1:], "cwd": "{trial_dir}", "era": "legacy"}}
    slow = calls(call("look"), call("homes")) | {"delay_ms": 500}
    project = write_project(tmp_path, [slow, DONE], servers=servers, trials=4, concurrency=2)
    with anyio.fail_after(30):
        run = (await run_async(project)).run
    looked = [[made.answer.shown for made in run.transcript(each).calls if made.answer] for each in run.records()]
    dirs = {json.loads(homes)["dir"] for _, homes in looked}
    assert len(dirs) == 4
    for found, homes in looked:
        own = json.loads(homes)["dir"]
        assert own in found
        assert not [other for other in dirs - {own} if other in found]
        for secret in (str(run.folder), "tasks.json", "mcptrials.yaml", str(tmp_path)):
            assert secret not in found


class Heard(Silent):
    """What a run warns of, and how many of its trials were in flight at most."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.running = self.most = 0

    def warn(self, what: str) -> None:
        self.warnings.append(what)

    def started(self, trial: Any) -> None:
        self.running += 1
        self.most = max(self.most, self.running)

    def recorded(self, record: Any) -> None:
        self.running -= 1


def sharing(folder: Path, environment: dict[str, Any], **keys: Any) -> Project:
    return write_project(folder, [DONE], environment=environment, trials=4, concurrency=4, **keys)


SHARED: list[dict[str, Any]] = [
    {"readers": {"all": {"sql": "select 1", "url": "sqlite:////var/tmp/all.db"}}},
    {"readers": {"all": {"sql": "select 1", "url": "sqlite:///{project_dir}/all.db"}}},
    {"readers": {"all": {"sql": "select 1", "url": "sqlite:///../all.db"}}},
    {"readers": {"all": {"file": "{project_dir}/notes.txt"}}},
    {"readers": {"all": {"sql": {"statement": "select 1", "url": "postgresql://127.0.0.1/all"}}}},
    {"reset": [{"sql": "create table if not exists t (x)", "url": "sqlite:///{project_dir}/all.db"}]},
]


@pytest.mark.parametrize("environment", SHARED)
async def test_trials_that_share_declared_state_run_one_at_a_time(environment: Any, tmp_path: Path) -> None:
    heard = Heard()
    with anyio.fail_after(30):
        await run_async(sharing(tmp_path, environment), listener=heard)
    assert heard.most == 1
    assert len(heard.warnings) == 1
    assert heard.warnings[0].startswith("trials run one at a time, since they share state outside their directories: ")


@pytest.mark.parametrize("url", ["sqlite:///{trial_dir}/own.db", "sqlite:///own.db"])
async def test_trials_with_state_of_their_own_run_side_by_side(url: str, tmp_path: Path) -> None:
    environment = {"reset": [{"sql": "create table t (x)", "url": url}], "state_hash": [{"file": "{project_dir}/x"}]}
    heard = Heard()
    with anyio.fail_after(30):
        await run_async(sharing(tmp_path, environment), listener=heard)
    assert (heard.most, heard.warnings) == (4, [])


async def test_a_server_is_not_started_ahead_into_state_that_trials_share(tmp_path: Path) -> None:
    project = sharing(tmp_path, SHARED[0], servers=looking(isolation="spare"))
    with anyio.fail_after(30), pytest.raises(UsageError, match="state that they share"):
        await run_async(project)
    assert not project.runs_dir.exists() or not list(project.runs_dir.iterdir())


def test_only_a_process_can_be_started_ahead(tmp_path: Path) -> None:
    server = {"url": "http://127.0.0.1:1/mcp", "isolation": "spare"}
    with pytest.raises(UsageError, match="goes with 'command'"):
        write_project(tmp_path, [DONE], servers={"far": server})
