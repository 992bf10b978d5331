"""A disk that fills up in the middle of a run."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import COMMAND, Ended, adds, asks, environment, make_project, run_folder

TRIALS = 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    if os.name != "posix" or os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system, and not everywhere")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def check_stopped(folder: Path, result: Ended, reason: str) -> int:
    """The run ended by one line that says how to go on; gives the number of trials on record."""
    run = run_folder(folder)
    assert result.code == 3, result
    assert "Traceback" not in result.err
    how = f"{reason}; make room, then go on with: mcptrials run --resume runs/{run.name}"
    assert result.err.splitlines()[-1] == f"error: {run}: cannot write the run: {how}"
    whole = [path.read_bytes().rpartition(b"\n")[0].splitlines() for path in run.glob("records/*")]
    return sum(map(len, whole))


def test_the_run_stops_in_one_line_and_goes_on_when_there_is_room(small_disk: Path, commands: Preloaded) -> None:
    folder = make_project(small_disk, [asks("sums")], {"sums": adds("5")}, trials=TRIALS)
    kept = check_stopped(folder, commands.run(folder, "run"), "No space left on device")
    assert 0 < kept < TRIALS
    shown = commands.run(folder, "show", "--json")
    assert (shown.code, shown.document["data"]["totals"]["trials"]) == (0, kept)

    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    resumed = commands.run(folder, "run", "--json", "--resume", f"runs/{run_folder(folder).name}")
    assert resumed.code == 0
    assert resumed.document["data"]["totals"]["passed"] == TRIALS
    assert commands.run(folder, "show", "--json").document["data"]["totals"]["passed"] == TRIALS


def test_a_limit_on_the_size_of_files_stops_it_alike(tmp_path: Path, commands: Preloaded) -> None:
    folder = make_project(tmp_path, [asks("sums")], {"sums": adds("5")}, trials=TRIALS)
    limited = ["bash", "-c", 'ulimit -f 24; exec "$@"', "bash", *COMMAND, "run", "--quiet"]
    ran = subprocess.run(limited, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    result = Ended(ran.returncode, ran.stdout, ran.stderr)
    kept = check_stopped(folder, result, "File too large")
    assert 0 < kept < TRIALS
    resumed = commands.run(folder, "run", "--quiet", "--resume", f"runs/{run_folder(folder).name}")
    assert resumed.code == 0
    assert commands.run(folder, "show", "--json").document["data"]["totals"]["passed"] == TRIALS


def test_a_disk_that_is_full_from_the_start_leaves_no_folder(small_disk: Path, commands: Preloaded) -> None:
    folder = make_project(small_disk, [asks("sums")], {"sums": adds("5")})
    with (folder / "filling").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    result = commands.run(folder, "run", "--quiet")
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(
        r"error: \S+/runs/\S+: cannot make the run's folder: No space left on device; check 'runs'.*\n", result.err
    )
    assert not list(folder.glob("runs/*"))
