"""Speed and memory of mcptrials, with a peer beside it in the same run: `make bench`.

Machines are noisy, so CPU counts before wall time, and only ratios of one run compare. Cost per trial is taken at the
margin: the difference between a small and a large run, divided by the trials between them; what is left is the start.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from statistics_speed import experiment_cpu_s, sign_flip_cpu_s
from stored import write_stored

from mcptrials import match_answer

HERE = Path(__file__).parent
PEER = HERE.parent / ".venv-peer" / "bin" / "python"
PEER_READY = HERE.parent / ".venv-peer" / ".ready"
TASKS, SMALL, LARGE = 20, 1, 6
"""Trials per task of the small and of the large run."""
CONCURRENCY, LATENCY_S, REQUESTS = 10, 1.0, 2
STORED, GRADE_LIMIT_S = 10_000, 20.0
"""Trials of a stored run that is graded again."""
HELP_LIMIT_S, CPU_LIMIT_MS, WALL_LIMIT, RSS_LIMIT_MB = 0.35, 15.0, 1.15, 140.0
STATISTICS_LIMIT_S, SIGN_FLIP_LIMIT_S = 2.0, 1.0
HELP_RUNS = 5
ANSWER_LIMIT_US, ANSWER_REPEATS = 50.0, 200
ANSWERS = HERE.parent / "tests" / "graders" / "answers.json"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Used:
    """What one run used by itself, and the CPU time of the servers that it started."""

    trials: int
    cpu_s: float
    servers_cpu_s: float
    rss_mb: float
    wall_s: float

    @property
    def bound_s(self) -> float:
        """The time that the endpoint's latency alone takes."""
        return self.trials / CONCURRENCY * REQUESTS * LATENCY_S


@dataclass(frozen=True)
class Cost:
    """What two runs of different size tell."""

    small: Used
    large: Used

    @property
    def cpu_ms_per_trial(self) -> float:
        return (self.large.cpu_s - self.small.cpu_s) / (self.large.trials - self.small.trials) * 1000

    @property
    def start_cpu_s(self) -> float:
        return self.small.cpu_s - self.small.trials * self.cpu_ms_per_trial / 1000

    @property
    def wall_ratio(self) -> float:
        return (self.large.wall_s - self.small.wall_s) / (self.large.bound_s - self.small.bound_s)

    @property
    def rss_mb(self) -> float:
        return self.large.rss_mb


@contextmanager
def endpoint(latency_s: float) -> Iterator[str]:
    """The fake endpoint's base URL, while it runs."""
    command = [sys.executable, str(HERE / "fake_llm.py"), str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def measure(command: list[str], folder: Path, trials: int) -> Used:
    """A command that writes what it used to `used.json` in its folder."""
    began_s = time.monotonic()
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    wall_s = time.monotonic() - began_s
    found = json.loads((folder / "used.json").read_text())
    return Used(trials, **found, wall_s=wall_s)


def write_project(folder: Path, base_url: str, server: str, concurrency: int, isolation: str = "spawn") -> None:
    """Twenty tasks with a deciding grader each."""
    project = {
        "version": 1,
        "servers": {"bench": {"command": "{python}", "args": [str(HERE / server)], "isolation": isolation}},
        "models": [{"model": "openai:fake", "base_url": base_url, "api_key": "sk-of-no-use"}],
        "concurrency": concurrency,
        "tasks": ["tasks.json"],
    }
    grader = {"type": "exact_answer", "expected": "5"}
    tasks = [{"id": f"t{n}", "prompt": f"Task {n}: add 2 and 3.", "graders": [grader]} for n in range(TASKS)]
    (folder / "mcptrials.json").write_text(json.dumps(project))
    (folder / "tasks.json").write_text(json.dumps(tasks))


def ours(folder: Path, trials: int) -> Used:
    """mcptrials: for each trial a fresh directory and server process, and a graded record on the disk."""
    options = ["run", "--project", "mcptrials.json", "--quiet", "--trials", str(trials)]
    return measure([sys.executable, str(HERE / "used.py"), *options], folder, TASKS * trials)


def regraded(folder: Path) -> Used:
    """mcptrials: a stored run graded again, by exact answers and checks of SQL state."""
    folder.mkdir()
    write_stored(folder, STORED)
    options = ["grade", "stored", "--project", "mcptrials.json", "--quiet"]
    return measure([sys.executable, str(HERE / "used.py"), *options], folder, STORED)


def peer(folder: Path, base_url: str, epochs: int) -> Used:
    """inspect-ai: for each trial a fresh server process and a scored sample."""
    numbers = [str(TASKS), str(epochs), str(CONCURRENCY)]
    return measure([str(PEER), str(HERE / "peer.py"), base_url, *numbers], folder, TASKS * epochs)


def help_cpu_s() -> float:
    """The median CPU time of `mcptrials --help`."""
    command = [sys.executable, "-m", "mcptrials", "--help"]
    found = []
    for _ in range(HELP_RUNS):
        before = os.times()
        subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return statistics.median(found)


def answer_us() -> float:
    """The median CPU time of comparing one answer, over pairs of every kind."""
    found = []
    for pair in json.loads(ANSWERS.read_text("utf-8")):
        compare = partial(match_answer, pair["expected"], pair["answer"], pair["kind"], **pair.get("opts", {}))
        best_s = min(timeit.repeat(compare, timer=time.process_time, number=ANSWER_REPEATS, repeat=3))
        found.append(best_s / ANSWER_REPEATS * 1e6)
    return statistics.median(found)


def row(what: str, value: float, unit: str, limit: float | None = None, other: float | None = None) -> str:
    """One line of the table: our value, its limit, the peer's value, and how many times ours that is."""
    mark = "" if limit is None else "ok" if value <= limit else "OVER"
    bound = "" if limit is None else f"{limit:.2f}"
    beside = "" if other is None else f"{other:10.2f}  {other / value:5.1f} x"
    return f"{what:46} {value:8.2f} {unit:3} {bound:>7} {mark:4} {beside}".rstrip()


def table(help_s: float, own: Cost, other: Cost | None, sdk: Used, stored: Used) -> Iterator[str]:
    def beside(name: str) -> float | None:
        value: float | None = getattr(other, name) if other else None
        return value

    large = own.large
    yield f"{'':46} {'mcptrials':>12} {'limit':>7}      {'inspect-ai   ratio' if other else ''}".rstrip()
    yield row("mcptrials --help: CPU", help_s, "s", HELP_LIMIT_S)
    yield row("an exact answer compared: CPU, median", answer_us(), "us", ANSWER_LIMIT_US)
    yield row("a run's start: own CPU", own.start_cpu_s, "s", None, beside("start_cpu_s"))
    yield row("each trial: own CPU", own.cpu_ms_per_trial, "ms", CPU_LIMIT_MS, beside("cpu_ms_per_trial"))
    yield row("each trial: wall time / latency bound", own.wall_ratio, "", WALL_LIMIT, beside("wall_ratio"))
    yield row(f"peak own memory, {large.trials} trials", large.rss_mb, "MB", RSS_LIMIT_MB, beside("rss_mb"))
    yield row(f"{stored.trials:,} stored trials graded again: CPU", stored.cpu_s, "s", GRADE_LIMIT_S)
    yield row("each trial: CPU of the server, no dependency", 1000 * large.servers_cpu_s / large.trials, "ms")
    yield row("each trial: CPU of the server, Python SDK", 1000 * sdk.servers_cpu_s / sdk.trials, "ms")
    yield row("statistics: 6 arms x 1,000 tasks x 20 trials", experiment_cpu_s(), "s", STATISTICS_LIMIT_S)
    yield row("statistics: sign flips of 2,000 tasks", sign_flip_cpu_s(), "s", SIGN_FLIP_LIMIT_S)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, endpoint(LATENCY_S) as base_url:
        folder = Path(name)
        help_s = help_cpu_s()
        write_project(folder, base_url, "mcp_server_min.py", CONCURRENCY, "auto")
        own = Cost(ours(folder, SMALL), ours(folder, LARGE))
        other = Cost(peer(folder, base_url, SMALL), peer(folder, base_url, LARGE)) if PEER_READY.exists() else None
        write_project(folder, base_url, "mcp_server_sdk.py", os.cpu_count() or 1)
        sdk = ours(folder, SMALL)
        stored = regraded(folder / "graded")
    print(f"{CONCURRENCY} trials at a time, {REQUESTS} requests of {LATENCY_S:g} s each; runs of", end=" ")
    print(f"{own.small.trials} and {own.large.trials} trials\n")
    print(*table(help_s, own, other, sdk, stored), sep="\n")


if __name__ == "__main__":
    main()
