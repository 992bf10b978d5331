"""Links and environments that a hostile server leaves where it may write, and a look at processes that fails."""

import errno
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.servers.test_sandbox import TRIES, World, made_world, needs_landlock, tried  # noqa: F401 - a fixture

from mcptrials.errors import HarnessError
from mcptrials.servers import headcount
from mcptrials.servers.confinement import LAUNCHER, Confined, Start

pytestmark = pytest.mark.anyio


@needs_landlock
@pytest.mark.parametrize(
    "secret", ["letters/private.txt", "letters", ".ssh/id_ed25519", "work/eval/runs/r1/manifest.json"]
)
async def test_a_link_that_a_server_puts_where_it_may_write_opens_nothing_in_the_next_run(
    secret: str, world: World
) -> None:
    data, place = world.project / "data", world.place()
    (data / "deep").mkdir(parents=True)
    (data / "deep/db").write_text("x")
    keys = {"write": [str(data), str(data / "deep")]}
    for path in (data / "deep/db", data / "deep"):
        tries = [("read", data / "deep/db"), ("write", data / "deep/db"), ("move", path)]
        moves = f"import os; os.chdir({str(data)!r})\n{TRIES}"
        assert await tried(world.server(moves, str(data / "deep/db"), **keys), place, *tries) == ["done"] * 3
        path.symlink_to(world.home / secret)  # as it can itself
        tries = [(what, each) for what in ("read", "names", "write") for each in (path, world.home / secret)]
        found = await tried(world.server(TRIES, str(data / "deep/db"), **keys), place, *tries)
        assert "done" not in found
        path.unlink()
        (data / "moved").rename(path)


def test_processes_are_counted_again_after_a_look_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headcount, "LOOK_S", 0.01)
    looks, ended = iter([OSError(errno.EMFILE, "files"), OSError(errno.EMFILE, "files")]), threading.Event()

    def count() -> Counter[int]:
        for failure in looks:
            raise failure
        return Counter({7: 3})

    with headcount.Headcount(count).bounded(7, 2, ended.set):
        assert ended.wait(10)


@needs_landlock
@pytest.mark.parametrize("way", ["home", "link", "editable"])
def test_an_environment_that_a_server_can_write_opens_nothing_but_itself(way: str, world: World) -> None:
    letters, venv = world.home / "letters", world.project / ".venv"
    about = venv / "lib/python3.11/site-packages/x.dist-info/direct_url.json"
    for file in (venv / "bin/python", about):
        file.parent.mkdir(parents=True)
    (venv / "bin/python").symlink_to(letters / "private.txt" if way == "link" else sys.executable)
    (venv / "pyvenv.cfg").write_text(f"home = {letters / 'bin' if way == 'home' else Path(sys.executable).parent}")
    about.write_text(json.dumps({"url": f"file://{letters}", "dir_info": {"editable": way == "editable"}}))
    assert "PermissionError" in read_by(venv / "bin/python", letters / "private.txt", world, write=[str(venv)])
    if way == "editable":
        assert read_by(venv / "bin/python", letters / "private.txt", world) == ""


@needs_landlock
def test_a_program_that_a_server_can_replace_opens_nothing(world: World) -> None:
    build, private = world.project / "build", world.home / "letters/private.txt"
    build.mkdir()
    (build / "shell").symlink_to(private)
    assert "PermissionError" in read_by(build / "shell", private, world, write=[str(build)])


def read_by(program: Path, target: Path, world: World, **sandbox: Any) -> str:
    """What a process says that has the rights of a server with that program, and reads a file."""
    server, start = world.server(command=program, **sandbox), Start([str(program)], world.project, {})
    assert isinstance(server.confinement, Confined)
    with server.confinement.rights(start, world.place()) as (ruleset, _):
        restrict = f"sys.path.insert(0, {str(LAUNCHER.parent)!r}); import launcher; launcher.restrict({ruleset}, b'')"
        reads = [sys.executable, "-c", f"import sys; {restrict}; open({str(target)!r})"]
        return subprocess.run(reads, pass_fds=[ruleset], capture_output=True, text=True, check=False).stderr


@needs_landlock
async def test_no_trial_begins_in_a_directory_that_was_replaced_by_a_link(world: World) -> None:
    place = world.place()
    place.trial_dir.rmdir()
    place.trial_dir.symlink_to(world.home / "letters")
    with pytest.raises(HarnessError, match="Not a directory"):
        await tried(world.server(), place, ("read", world.home / "letters/private.txt"))
    assert [each.name for each in (world.home / "letters").iterdir()] == ["private.txt"]
