"""A server in a container: the command line that is built, and a start through a program that stands in for docker."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.tiny_project import SERVER, adds, asks, make_project, records, run_folder
from tests.servers.talking import place

from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.runner import run
from mcptrials.servers.confinement import Start
from mcptrials.servers.container import Container
from mcptrials.servers.sandbox import Sandbox

STAND_IN = f"""#!{sys.executable} -S
import json, os, sys
words = sys.argv[1:]
with open(os.environ["DOCKER_LOG"], "a") as log:
    log.write(json.dumps([words, sorted(os.environ)]) + "\\n")
if words[0] == "run":
    command = words[words.index("--entrypoint") + 1]
    given = [words[at + 1] for at, word in enumerate(words) if word == "--env"]
    env = dict(each.split("=", 1) if "=" in each else (each, os.environ[each]) for each in given)
    os.execvpe(command, [command, *words[words.index("shop:1") + 1:]], env)
"""
"""Does as docker does as far as streams, arguments and variables go; nothing is contained."""


def container(**keys: Any) -> Container:
    box = Sandbox(mode="container", image="shop:1", **keys)
    env = (("PATH", "/usr/bin"), ("HOME", "/home/ada"))
    return Container(sandbox=box, server="shop", own=("TOKEN", "HOME"), client_env=env, user="7:8", workdir=False)


def started(found: Container, folder: Path, **env: str) -> Start:
    with found.launch(Start(["serve", "--port", "1"], folder, env), place(folder)) as start:
        return start


def pairs(start: Start, option: str) -> list[str]:
    words = list(start.argv)
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def test_a_container_has_limits_no_privileges_and_the_trials_directory(tmp_path: Path) -> None:
    start = started(container(), tmp_path)
    words = list(start.argv)
    assert words[:5] == ["docker", "run", "--interactive", "--rm", "--init"]
    assert words[-3:] == ["shop:1", "--port", "1"]
    assert pairs(start, "--entrypoint") == ["serve"]
    assert pairs(start, "--mount") == [f"type=bind,src={tmp_path},dst={tmp_path}"]
    assert pairs(start, "--security-opt") == ["no-new-privileges"]
    assert pairs(start, "--cap-drop") == ["ALL"]
    assert pairs(start, "--user") == ["7:8"]
    assert pairs(start, "--memory") == pairs(start, "--memory-swap") == ["4096m"]
    assert pairs(start, "--pids-limit") == ["512"]
    assert pairs(start, "--ulimit") == ["cpu=600:600", f"fsize={1 << 30}:{1 << 30}", "nofile=4096:4096", "core=0:0"]
    assert not {"--network", "--workdir", "--privileged"} & {*words}


def test_a_container_has_no_network_other_mounts_and_no_limits_where_asked(tmp_path: Path) -> None:
    none = dict.fromkeys(("cpu_seconds", "memory_mb", "file_mb", "processes", "open_files"))
    found = container(network=False, program="podman", **none)
    found = Container(found.sandbox, "shop", (), (), "7:8", workdir=True, read=(Path('/a,"b'),), write=(Path("/c"),))
    start = started(found, tmp_path)
    assert start.argv[0] == "podman"
    assert pairs(start, "--network") == ["none"]
    assert pairs(start, "--workdir") == [str(tmp_path)]
    assert pairs(start, "--userns") == ["keep-id"]
    assert pairs(start, "--mount")[:2] == [
        'type=bind,"src=/a,""b","dst=/a,""b",readonly',
        "type=bind,src=/c,dst=/c",
    ]
    assert pairs(start, "--ulimit") == ["core=0:0"]
    assert not {"--memory", "--pids-limit", "--user"} & {*start.argv}


def test_values_of_variables_are_not_on_the_command_line_and_do_not_rule_the_client(tmp_path: Path) -> None:
    found = container()
    start = started(found, tmp_path, TOKEN="s3cr3t", HOME="/trial/home", PATH="/ours", DOCKER_HOST="tcp://evil")
    assert "s3cr3t" not in " ".join(start.argv)
    assert pairs(start, "--env") == ["TOKEN", "HOME=/trial/home", "DOCKER_HOST=tcp://evil"]
    assert start.env == {"TOKEN": "s3cr3t", "PATH": "/usr/bin", "HOME": "/home/ada"}


def project(tmp_path: Path) -> Path:
    sandbox = {"mode": "container", "image": "shop:1"}
    server = {"command": sys.executable, "args": ["-S", str(SERVER)], "env": {"KIND": "x"}, "sandbox": sandbox}
    return make_project(tmp_path / "p", [asks("sums")], {"sums": adds("5")}, servers={"shop": server}, trials=1)


def test_a_run_starts_its_servers_in_containers_and_removes_what_may_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, log = tmp_path / "bin/docker", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_LOG", str(log))
    folder = project(tmp_path)
    result = run(Project.load(folder))
    assert [record["verdict"] for record in records(run_folder(folder))] == ["passed"]
    in_force = result.run.manifest["preflight"]["base"]["shop"]["sandbox"]
    assert (in_force["in_force"], in_force["image"], in_force["program"]) == ("container", "shop:1", "docker")
    calls = [json.loads(line)[0] for line in log.read_text().splitlines()]
    names = [words[words.index("--name") + 1] for words in calls if words[0] == "run"]
    assert len({*names}) == 2  # before the run, and in it
    assert [words for words in calls if words[0] == "rm"] == [["rm", "--force", name] for name in names]


def test_a_machine_without_the_program_is_told_so_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"servers\.shop\.sandbox: there is no program 'docker' to run containers"):
        run(Project.load(folder))
    assert not (folder / "runs").exists()
