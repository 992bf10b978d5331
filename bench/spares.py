"""What is won by starting servers ahead, on a server of the official Python SDK: a part of `make bench`.

Both ways of starting are measured in one run of the bench, since only ratios of one run compare. No way of starting can
do with less CPU than the servers take: that bound stands beside the one by the endpoint's latency.
"""

import json
import os
import statistics
import tempfile
from pathlib import Path

from run import CONCURRENCY, LATENCY_S, REQUESTS, TASKS, Used, endpoint, ours, row, write_project

FEW, MANY = 1, 15
"""Trials per task: for the start of one server at a time on each core, and for a long run."""
HIDDEN_LIMIT, WALL_LIMIT = 0.80, 1.25
SERVER = "mcp_server_sdk.py"
WAYS = ("spawn", "spare")


def waited_ms(run: Path, first: int) -> float:
    """The median time from a trial's begin to its prompt, without the first ones: for them nothing is ahead."""
    lines = [json.loads(line) for path in run.glob("records/*.jsonl") for line in path.read_text().splitlines()]
    later = sorted(lines, key=lambda record: record["started_at"])[first:]
    found = []
    for record in later:
        events = map(json.loads, (run / record["transcript"]).read_text().splitlines())
        found += [event["at_ms"] for event in events if event["kind"] == "prompt"]
    return statistics.median(found)


def newest_run(folder: Path) -> Path:
    return max((folder / "runs").iterdir(), key=lambda run: run.stat().st_mtime)


def waits(folder: Path, base_url: str, isolation: str) -> float:
    """As many trials at a time as there are cores: what one start takes, not what many take from each other."""
    cores = os.cpu_count() or 1
    write_project(folder, base_url, SERVER, cores, isolation)
    ours(folder, FEW)
    return waited_ms(newest_run(folder), cores)


def long_run(folder: Path, base_url: str, isolation: str) -> Used:
    write_project(folder, base_url, SERVER, CONCURRENCY, isolation)
    return ours(folder, MANY)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, endpoint(LATENCY_S) as base_url:
        folder = Path(name)
        waited = {way: waits(folder, base_url, way) for way in WAYS}
        used = {way: long_run(folder, base_url, way) for way in WAYS}
    hidden = 1 - waited["spare"] / waited["spawn"]
    print(f"\nA server of the Python SDK, {REQUESTS} requests of {LATENCY_S:g} s each; {MANY * TASKS} trials, ", end="")
    print(f"{CONCURRENCY} at a time\n")
    print(row("from a trial's begin to its prompt, spawned", waited["spawn"], "ms"))
    print(row("from a trial's begin to its prompt, spare", waited["spare"], "ms"))
    print(row("not hidden by spares", 1 - hidden, "", 1 - HIDDEN_LIMIT))
    for way in WAYS:
        limit = WALL_LIMIT if way == "spare" else None
        print(row(f"{way}: wall time / latency bound", used[way].wall_s / used[way].bound_s, "", limit))
        cpu_s = (used[way].servers_cpu_s + used[way].cpu_s) / (os.cpu_count() or 1)
        print(row(f"{way}: wall time / bound by latency and CPU", used[way].wall_s / max(used[way].bound_s, cpu_s), ""))
        print(row(f"{way}: CPU of the servers, each trial", 1000 * used[way].servers_cpu_s / used[way].trials, "ms"))


if __name__ == "__main__":
    main()
