"""Whether whole runs recover rates that are known: each is a project of its own, whose report is read."""

import json
import os
import random
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

import mcptrials
from mcptrials.stats import compare_paired, estimate

TASKS, TRIALS = 6, 2
LIKE, THESE = "tasks-like-these", "these-tasks"
MEAN, VARIANCE = 0.5, 0.05
"""Of the rates of arm a: Beta(2, 2). Those of arm b lie half as far from 1."""

Found = dict[tuple[str, str], bool]
"""By what is estimated and its scope: whether the interval holds the truth."""


def known(number: float | None) -> float:
    """The number, which these runs always give."""
    assert number is not None
    return number


def server() -> MCPServer:
    """A server of one tool, which the scripts call."""
    made = MCPServer("recovery")

    @made.tool(annotations=ToolAnnotations(read_only_hint=True))
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    return made


def write_project(folder: Path, seed: int, rates: dict[str, list[float]]) -> None:
    """A project of two scripted models, with one list of rates for each."""
    ids = [f"t{number}" for number in range(TASKS)]
    graders = [{"type": "exact_answer", "expected": "4"}]
    config = {
        "version": 1,
        "servers": {"double": {"python": f"{Path(__file__).resolve()}:server"}},
        "models": [f"scripted:{arm}.json" for arm in rates],
        "trials": TRIALS,
        "tasks": ["tasks.json"],
        "seed": seed,
    }
    call = {"calls": [{"tool": "double", "args": {"number": 2}}]}
    (folder / "mcptrials.yaml").write_text(json.dumps(config))
    (folder / "tasks.json").write_text(
        json.dumps([{"id": each, "prompt": "Twice 2?", "graders": graders} for each in ids])
    )
    for arm, of_arm in rates.items():
        played = {
            each: {"steps": [call, {"answer": "4"}], "otherwise": [call, {"answer": "5"}], "pass_rate": rate}
            for each, rate in zip(ids, of_arm, strict=True)
        }
        script = {"version": 1, "seed": seed * 2 + (arm == "b"), "tasks": played}
        (folder / f"{arm}.json").write_text(json.dumps(script))


def recovered(seed: int) -> Found:
    """One run of a project with rates of its own, and which of its intervals hold them."""
    rng = random.Random(seed)
    own = [rng.betavariate(2, 2) for _ in range(TASKS)]
    rates = {"a": own, "b": [(1 + rate) / 2 for rate in own]}
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), seed, rates)
        run = mcptrials.run(mcptrials.Project.load(Path(folder))).run
        return dict(_held(run, rates))


def _held(run: mcptrials.Run, rates: dict[str, list[float]]) -> Iterator[tuple[tuple[str, str], bool]]:
    a, b = sum(rates["a"]) / TASKS, sum(rates["b"]) / TASKS
    row = next(arm for arm in mcptrials.summarise(run)["arms"] if arm["label"].endswith("a.json"))
    yield ("rate", LIKE), row["ci_low"] <= MEAN <= row["ci_high"]
    low, high = row["pass_hat_ci"]["2"]
    yield ("pass^2", LIKE), low <= MEAN**2 + VARIANCE <= high
    [found] = mcptrials.compare(run, allow=["model"])["comparisons"]
    yield ("difference", LIKE), found["ci_low"] <= MEAN / 2 <= found["ci_high"]
    scores_a, scores_b = (_scores(run, found[side]["arm"]) for side in "ab")
    alone = estimate(scores_a, scope="these-tasks")
    yield ("rate", THESE), known(alone.ci_low) <= a <= known(alone.ci_high)
    # Not by `compare`: a script repeats itself word for word, which it takes for copied trials, and refuses.
    both = compare_paired(scores_a, scores_b, scope="these-tasks")
    yield ("difference", THESE), known(both.ci_low) <= b - a <= known(both.ci_high)


def _scores(run: mcptrials.Run, arm: str) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for record in run.records():
        if record.arm == arm and record.passed is not None:
            scores.setdefault(record.task_id, []).append(float(record.passed))
    return scores


def recovery(seeds: Iterable[int]) -> dict[tuple[str, str], float]:
    """Of each interval the share of runs in which it holds the truth."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(recovered, seeds, chunksize=4))
    return {key: sum(each[key] for each in found) / len(found) for key in found[0]}
