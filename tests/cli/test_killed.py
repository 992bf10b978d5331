"""A run that is ended from outside, and that no process of it is left."""

import os
import pty
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.preloaded import Forked, Preloaded
from tests.cli.tiny_project import (
    COMMAND,
    SERVER,
    adds,
    asks,
    environment,
    make_project,
    records,
    run_folder,
    wait_until,
)

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are told apart on Linux only"
)

STUBBORN = """
import os, pathlib, runpy, signal, subprocess, sys

def start():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(600)", sys.argv[1]]
    subprocess.run(["setsid", "-f", *sleep], env={"PATH": os.defpath}, check=True)
    subprocess.Popen(sleep, start_new_session=True)

checked = pathlib.Path(sys.argv[2])
stubborn = checked.exists()
checked.touch()
if stubborn:
    start()
sys.argv = [sys.argv[0]]
try:
    runpy.run_path(PROGRAM, run_name="__main__")
finally:
    if stubborn:
        signal.pause()
"""
"""A server that, but for when it is checked, ends by nothing but KILL, with a child in a session of its own and a
daemon of no environment."""


def stubborn_project(folder: Path, mark: str, delay_ms: int = 20_000) -> Path:
    """Two slow trials at a time."""
    folder.mkdir(exist_ok=True)
    (folder / "stubborn.py").write_text(f"PROGRAM = {str(SERVER)!r}\n{STUBBORN}")
    args = ["{project_dir}/stubborn.py", mark, "{project_dir}/checked"]
    sandbox = {"read": [str(SERVER)], "write": ["{project_dir}"]}
    servers = {"tiny": {"command": "{python}", "args": args, "sandbox": sandbox}}
    script = {"slow": adds("5", delay_ms)}
    return make_project(folder, [asks("slow")], script, trials=2, concurrency=2, servers=servers)


def alive(mark: str) -> list[int]:
    """Processes whose command names a mark."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def watchdogs(root: str) -> list[int]:
    return alive(root)


def trial_root(folder: Path) -> str:
    found = (run_folder(folder) / "lock").read_text()
    return str(found.split('"trial_root": "')[1].split('"')[0])


def begin(commands: Preloaded, folder: Path, mark: str) -> Forked:
    """A run with two trials in flight, three processes each."""
    command = commands.start(folder, "run")
    wait_until(lambda: len(list(folder.glob("runs/*/wire/*"))) == 2, "two trials are in flight")
    wait_until(lambda: len(alive(mark)) == 6, "the servers and what they start run")
    return command


def test_no_process_outlives_a_run_that_is_killed(tmp_path: Path, commands: Preloaded) -> None:  # C05
    mark = f"mark-of-{tmp_path}"
    command = begin(commands, stubborn_project(tmp_path, mark), mark)
    watching = watchdogs(trial_root(tmp_path))
    assert len(watching) == 1
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGTSTP):
        os.kill(watching[0], number)
    os.kill(command.pid, signal.SIGKILL)
    command.ended()
    wait_until(lambda: not alive(mark), "all that the servers started is gone")
    wait_until(lambda: not watchdogs(trial_root(tmp_path)), "the watchdog is gone too")


def test_what_a_killed_run_left_ends_when_it_is_resumed_and_nothing_else_does(
    tmp_path: Path, commands: Preloaded
) -> None:
    mark, other = f"mark-of-{tmp_path}", f"other-of-{tmp_path}"
    folder = stubborn_project(tmp_path / "p", mark)
    command = begin(commands, folder, mark)
    os.kill(watchdogs(trial_root(folder))[0], signal.SIGKILL)
    os.kill(command.pid, signal.SIGKILL)
    command.ended()
    assert len(alive(mark)) == 6
    stranger = subprocess.Popen(["sh", "-c", "read word", other], stdin=subprocess.PIPE, env={"TMPDIR": str(tmp_path)})
    try:
        stubborn_project(folder, mark, delay_ms=0)
        (folder / "stubborn.py").write_text(Path(SERVER).read_text())
        resumed = commands.run(folder, "run", "--resume", run_folder(folder).name)
        assert resumed.code == 0, resumed.err
        assert not alive(mark)
        assert alive(other)
    finally:
        stranger.communicate(timeout=10)


@pytest.mark.parametrize("outlived", [False, True])
def test_a_terminal_that_closes_cancels_the_run_unless_that_is_to_be_outlived(tmp_path: Path, outlived: bool) -> None:
    """As `nohup` asks for it."""
    folder = make_project(tmp_path, [asks("slow")], {"slow": adds("5", 700)}, trials=4, concurrency=2)
    words = ["sh", "-c", "trap '' HUP; exec \"$@\"", "nohup"] if outlived else []
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*words, *COMMAND, "run"], cwd=folder, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        wait_until(lambda: len(list(folder.glob("runs/*/wire/*"))) >= 2, "two trials are in flight")
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        code = process.wait(timeout=60)
    found = [(each["verdict"], each["cause"]) for each in records(run_folder(folder))]
    if outlived:
        assert (code, found) == (0, [("passed", None)] * 4)
    else:
        assert code == 3
        assert ("invalid", "cancelled") in found
        assert len(found) < 4


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_spare_outlives_its_run(how: signal.Signals, tmp_path: Path, commands: Preloaded) -> None:
    """Two trials in flight, and a place ahead for each of the next two."""
    mark = f"mark-of-{tmp_path}"
    servers = {"tiny": {"command": "{python}", "args": [str(SERVER), mark], "isolation": "spare"}}
    script = {"slow": adds("5", 20_000)}
    make_project(tmp_path, [asks("slow")], script, trials=6, concurrency=2, servers=servers)
    command = commands.start(tmp_path, "run")
    wait_until(lambda: len(alive(mark)) == 4, "the servers and the spares run")
    root = trial_root(tmp_path)
    os.kill(command.pid, how)
    command.ended()
    wait_until(lambda: not alive(mark), "no server is left")
    assert how == signal.SIGKILL or not Path(root).exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_fork_server_outlives_its_run(how: signal.Signals, tmp_path: Path, commands: Preloaded) -> None:
    servers = {"tiny": {"command": "{python}", "args": [str(SERVER)], "isolation": "fork"}}
    script = {"slow": adds("5", 20_000)}
    make_project(tmp_path, [asks("slow")], script, trials=2, concurrency=2, servers=servers)
    command = commands.start(tmp_path, "run")
    wait_until(lambda: len(list(tmp_path.glob("runs/*/wire/*"))) == 2, "two trials are in flight")
    root = trial_root(tmp_path)
    wait_until(lambda: len(of_run(root)) == 3, "the fork server and two of its processes run")
    os.kill(command.pid, how)
    command.ended()
    wait_until(lambda: not of_run(root), "nothing of it is left")


def of_run(root: str) -> list[int]:
    """Processes whose environment names its directory."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and os.fsencode(root) + b"/" in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found
