"""Package runners: what they start is found out once, and recorded; without a network, from packages made here."""

import json
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.projects import DONE, write_project

from mcptrials.environment import TrialPlaces
from mcptrials.runner import run_async
from mcptrials.runner.launch import LaunchError, find_launch
from mcptrials.runner.options import Silent
from mcptrials.runner.preflight import no_wire

pytestmark = pytest.mark.anyio

UVX = Path(sys.executable).parent / "uvx"
NODE_SERVER = """#!/usr/bin/env node
const about = {name: "greeter", version: "1.2.3"};
const info = {protocolVersion: "2025-11-25", capabilities: {tools: {}}, serverInfo: about};
const results = {initialize: info, "tools/list": {tools: [{name: "greet", inputSchema: {type: "object"}}]}};
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const {id, method} = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method];
  console.log(JSON.stringify({jsonrpc: "2.0", id, ...(result ? {result} : {error: {code: -32601, message: "no"}})}));
});
"""
PYTHON_SERVER = """
import json, sys

INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "greeter"}}
RESULTS = {"initialize": INFO, "tools/list": {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}}
INFO["serverInfo"]["version"] = "1.2.3"


def main():
    for line in sys.stdin:
        message = json.loads(line)
        result = RESULTS.get(message["method"])
        if "id" in message:
            answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def npm_package(folder: Path) -> None:
    """`greeter`, installed in a folder."""
    package = folder / "node_modules" / "greeter"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "greeter", "version": "1.2.3", "bin": "main.js"}))
    (package / "main.js").write_text(NODE_SERVER)
    (package / "main.js").chmod(0o755)
    (folder / "node_modules" / ".bin").mkdir()
    (folder / "node_modules" / ".bin" / "greeter").symlink_to("../greeter/main.js")
    (folder / "package.json").write_text(json.dumps({"dependencies": {"greeter": "1.2.3"}}))


def wheel(folder: Path) -> None:
    """`greet-er` as a wheel in a folder."""
    about = "greet_er-1.2.3.dist-info"
    files = {
        "greet_er.py": PYTHON_SERVER,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: greet-er\nVersion: 1.2.3\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\ngreet-er = greet_er:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / "greet_er-1.2.3-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


async def launch_of(folder: Path, command: str, *args: str) -> tuple[dict[str, Any], list[str]]:
    """What the manifest says of a server's launch in a run that passes, and the warnings."""
    listener = Silent()
    servers = {"greeter": {"command": command, "args": list(args)}}
    result = await run_async(write_project(folder, [DONE], servers=servers), None, listener)
    assert [record.verdict for record in result.run.records()] == ["passed"]
    found: dict[str, Any] = result.run.manifest["preflight"]["base"]["greeter"]["launch"]
    return found, listener.warnings


@pytest.mark.skipif(shutil.which("npx") is None, reason="there is no npx")
async def test_npx_is_resolved_to_the_program_of_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # C09
    monkeypatch.setenv("npm_config_offline", "true")
    npm_package(tmp_path)
    launch, warnings = await launch_of(tmp_path, "npx", "-y", "greeter@1.2.3", "--loud")
    assert launch == {"command": shutil.which("node"), "package": "greeter", "version": "1.2.3", "pinned": True}
    assert warnings == []


@pytest.mark.skipif(not UVX.exists(), reason="there is no uvx")
async def test_uvx_is_resolved_to_the_program_of_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"OFFLINE": "1", "NO_INDEX": "1", "FIND_LINKS": tmp_path, "CACHE_DIR": tmp_path / "uv"}.items():
        monkeypatch.setenv(f"UV_{name}", str(value))
    wheel(tmp_path)
    launch, warnings = await launch_of(tmp_path, str(UVX), "greet-er")
    assert Path(launch.pop("command")).name == "greet-er"
    assert launch == {"package": "greet-er", "version": "1.2.3", "pinned": False}
    assert warnings == [
        f"server 'greeter': {UVX} took greet-er 1.2.3; name that version to test the same one next time"
    ]


async def test_a_runner_that_cannot_be_resolved_is_used_as_it_is_with_a_warning(tmp_path: Path) -> None:
    runner = tmp_path / "npx"
    runner.write_text(
        f"#!/bin/sh\ncase $* in *--package*) exit 7;; esac\nexec {sys.executable} -m mcptrials.servers.faulty"
    )
    runner.chmod(0o755)
    launch, warnings = await launch_of(tmp_path, str(runner), "greeter")
    assert launch is None
    (warning,) = warnings
    assert "it exited with code 7" in warning


@pytest.mark.parametrize(
    ("command", "args", "settings", "message"),
    [
        ("npx", ["--registry", "x", "a"], [], "the option '--registry' is not known here"),
        ("npx", ["-y"], [], "it names no package"),
        ("npx", ["-y", "github:a/b"], [], "'github:a/b' is no package of the registry"),
        ("uvx", ["--with", "x", "a"], [], "the option '--with' is not known here"),
        ("uvx", ["--from", "git+https://x", "a"], [], "'git+https://x' names no package and version"),
        ("uvx", ["a@latest"], [], "'a@latest' names no package and version"),
        ("uv", ["tool", "run", "--from", "./x", "a"], [], "'./x' names no package and version"),
        ("uvx", ["a"], ["UV_INDEX"], "'UV_INDEX' is set, which may change what it finds"),
        (os.devnull + "/npx", ["a"], [], "cannot start"),
    ],
)
async def test_what_cannot_be_told_from_the_command_line_is_not_guessed(
    command: str, args: list[str], settings: list[str], message: str, tmp_path: Path
) -> None:
    places = TrialPlaces.create(tmp_path)
    try:
        with pytest.raises(LaunchError) as caught:
            await find_launch(command, args, settings, places.make(no_wire))
    finally:
        places.close()
    assert message in str(caught.value)
