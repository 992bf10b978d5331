"""Memory of a long run, which should not grow with its trials: `make bench-memory`."""

import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import CONCURRENCY, ENVIRONMENT, TASKS, endpoint, row, write_project

FIRST, LAST = 100, int(os.environ.get("BENCH_TRIALS", "5000"))
GROWTH_LIMIT = 1.10
POLL_S = 0.25


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def recorded(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("runs/*/records/*.jsonl"))


def measured(folder: Path) -> list[tuple[int, float]]:
    """Trials that were on record, with the memory at that time."""
    trials = str(LAST // TASKS)
    command = [sys.executable, "-m", "mcptrials", "run", "--project", "mcptrials.json", "--quiet", "--trials", trials]
    found, marks = [], itertools.chain([FIRST, *range(500, LAST - CONCURRENCY, 500)], [LAST - CONCURRENCY])
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process:
        for mark in marks:
            while (count := recorded(folder)) < mark:
                assert process.poll() is None, f"the run ended after {count} trials"
                time.sleep(POLL_S)
            found.append((count, rss_mb(process.pid)))
    assert process.returncode in (0, 1), process.returncode
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name, endpoint(0.0) as base_url:
        folder = Path(name)
        write_project(folder, base_url, "mcp_server_min.py", CONCURRENCY, "auto")
        found = measured(folder)
    for trials, mb in found:
        print(row(f"own memory after {trials} trials", mb, "MB"))
    print(row("the last / the first", found[-1][1] / found[0][1], "", GROWTH_LIMIT))


main()
