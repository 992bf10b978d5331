"""What is won by starting servers ahead or forking them, on a server of the official Python SDK: in `make bench`.

All ways of starting are measured in one run of the bench, since only ratios of one run compare. No way of starting can
do with less CPU than the servers take: that bound stands beside the one by the endpoint's latency.
"""

import json
import os
import statistics
import tempfile
from pathlib import Path

from run import CONCURRENCY, LATENCY_S, REQUESTS, Used, endpoint, ours, row, write_project

FEW = 1
"""Trials per task for the start of one server at a time on each core."""
MANY = {"spawn": 3, "spare": 3, "fork": 15}
"""Trials per task of a run against its bounds; what is far above them need not be seen for long."""
HIDDEN_LIMIT, WALL_LIMIT = 0.80, 1.25
SERVER = "mcp_server_sdk.py"


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
    return ours(folder, MANY[isolation])


def main() -> None:
    with tempfile.TemporaryDirectory() as name, endpoint(LATENCY_S) as base_url:
        folder = Path(name)
        waited = {way: waits(folder, base_url, way) for way in MANY}
        used = {way: long_run(folder, base_url, way) for way in MANY}
    hidden = 1 - waited["spare"] / waited["spawn"]
    print(f"\nA server of the Python SDK, {REQUESTS} requests of {LATENCY_S:g} s each, {CONCURRENCY} at a time\n")
    for way in MANY:
        print(row(f"{way}: from a trial's begin to its prompt", waited[way], "ms"))
    print(row("not hidden by spares", 1 - hidden, "", 1 - HIDDEN_LIMIT))
    for way, found in used.items():
        limit = WALL_LIMIT if way == "fork" else None
        print(row(f"{way}, {found.trials} trials: wall time / latency bound", found.wall_s / found.bound_s, "", limit))
        cpu_s = (found.servers_cpu_s + found.cpu_s) / (os.cpu_count() or 1)
        print(row(f"{way}: wall time / bound by latency and CPU", found.wall_s / max(found.bound_s, cpu_s), ""))
        print(row(f"{way}: CPU of the servers, each trial", 1000 * found.servers_cpu_s / found.trials, "ms"))


if __name__ == "__main__":
    main()
