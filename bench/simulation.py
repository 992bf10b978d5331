"""Whether intervals cover and tests err as they say: `make bench-stats` writes the tables of docs/statistics.md."""

import math
import os
import random
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from bench.recovery import TASKS, TRIALS, recovery

from mcptrials.stats import (
    PairedComparison,
    Scope,
    compare_paired,
    copies_exceed_chance,
    estimate,
    wilson_interval,
)
from mcptrials.stats.paired import FEWEST_UNITS

PAGE = Path(__file__).parent.parent / "docs" / "statistics.md"
BEGIN, END = "<!-- simulation: written by make bench-stats -->", "<!-- end of simulation -->"
Z = NormalDist().inv_cdf(0.975)

Trials = dict[str, list[int]]


@dataclass(frozen=True)
class Design:
    """Two arms as they were drawn, with what is true of them."""

    a: Trials
    b: Trials
    groups: dict[str, str]
    replies: tuple[dict[str, list[str]], dict[str, list[str]]]
    truth: float = 0.0


def draw(kind: str, rng: random.Random) -> Design:
    """Two equal arms. Kinds: plain, unequal (trials), copied, groups, tasks (rates differ, but not on average)."""
    n, k, shape = rng.randint(6, 60), rng.randint(2, 8), rng.choice([(2, 2), (0.5, 0.5), (4, 1), (9, 0.5)])
    groups = {f"t{i}": f"g{rng.randrange(max(6, n // 3))}" for i in range(n)} if kind == "groups" else {}
    shift = {(arm, group): rng.gauss(0, 0.2) for arm in "ab" for group in sorted(set(groups.values()))}
    a: Trials = {}
    b: Trials = {}
    said_a: dict[str, list[str]] = {}
    said_b: dict[str, list[str]] = {}
    for task in (f"t{i}" for i in range(n)):
        rate = rng.betavariate(*shape)
        for arm, trials, said in (("a", a, said_a), ("b", b, said_b)):
            own = rng.betavariate(*shape) if kind == "tasks" else rate + shift.get((arm, groups.get(task, "")), 0.0)
            drawn = [int(rng.random() < own) for _ in range(rng.randint(1, k) if kind == "unequal" else k)]
            trials[task] = [drawn[0]] * k if kind == "copied" else drawn
            said[task] = [f"{arm}{0 if kind == 'copied' else i}" for i in range(len(drawn))]
    return Design(a, b, groups, (said_a, said_b))


def pooled_verdict(a: Trials, b: Trials) -> str:
    """What the two-proportion z test says when all trials count as independent."""
    (x_a, n_a), (x_b, n_b) = ((sum(map(sum, arm.values())), sum(map(len, arm.values()))) for arm in (a, b))
    pooled = (x_a + x_b) / (n_a + n_b)
    error = math.sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b))
    difference = x_b / n_b - x_a / n_a
    return "inconclusive" if abs(difference) <= Z * error else "better" if difference > 0 else "worse"


def compared(design: Design, scope: Scope) -> PairedComparison:
    """The comparison as the product makes it: with groups, and with a look for copies."""
    copied = scope == "these-tasks" and copies_exceed_chance(*design.replies)
    return compare_paired(design.a, design.b, design.groups, scope, copied=copied)


def equal_arms(kind: str, scope: Scope, runs: int, seed: int = 0) -> tuple[float, float, float]:
    """Shares of designs with equal arms that are called better, worse, and either by pooling all trials."""
    better = worse = pooled = 0
    for run in range(runs):
        design = draw(kind, random.Random(f"{seed} {kind} {run}"))
        verdict = compared(design, scope).verdict
        better, worse = better + (verdict == "better"), worse + (verdict == "worse")
        pooled += pooled_verdict(design.a, design.b) != "inconclusive"
    return better / runs, worse / runs, pooled / runs


Shape = tuple[float, float]


def known(number: float | None) -> float:
    """The number, which these designs always give."""
    assert number is not None
    return number


def coverage(n: int, k: int, shape: Shape, runs: int) -> tuple[float, float, float, float]:
    """Shares of intervals that hold the true rate: ours, mean +- 1.96 SE, Wilson on all trials; and our mean width."""
    rng, held, width = random.Random(f"{n} {k} {shape}"), [0, 0, 0], 0.0
    truth = shape[0] / sum(shape)
    for _ in range(runs):
        rates = [rng.betavariate(*shape) for _ in range(n)]
        trials = {f"t{i}": [int(rng.random() < rate) for _ in range(k)] for i, rate in enumerate(rates)}
        e = estimate(trials)
        low, high = wilson_interval(sum(map(sum, trials.values())), n * k)
        own_low, own_high = known(e.ci_low), known(e.ci_high)
        held[0] += own_low <= truth <= own_high
        held[1] += abs(truth - known(e.mean)) <= Z * known(e.se)
        held[2] += low <= truth <= high
        width += own_high - own_low
    return held[0] / runs, held[1] / runs, held[2] / runs, width / runs


def draw_different(n: int, k: int, difference: float, fixed: bool, rng: random.Random) -> Design:
    """Arms that differ by `difference` on average: by +-0.2 around it between tasks, or on each task alike."""
    a, b = {}, {}
    for task in (f"t{i}" for i in range(n)):
        own = difference + (0.0 if fixed else rng.choice([-0.2, 0.2]))
        middle = rng.uniform(abs(own) / 2, 1 - abs(own) / 2)
        a[task] = [int(rng.random() < middle - own / 2) for _ in range(k)]
        b[task] = [int(rng.random() < middle + own / 2) for _ in range(k)]
    return Design(a, b, {}, ({}, {}), difference)


def differing_arms(n: int, difference: float, scope: Scope, runs: int) -> tuple[float, float, float, float]:
    """Of arms that differ: our power, that of Student's t, our coverage, and the mean width of our interval."""
    rng, found, by_t, held, width = random.Random(f"{n} {difference} {scope}"), 0, 0, 0, 0.0
    for _ in range(runs):
        design = draw_different(n, 5, difference, scope == "these-tasks", rng)
        result = compare_paired(design.a, design.b, scope=scope)
        low, high = known(result.ci_low), known(result.ci_high)
        found += result.verdict == "better"
        by_t += result.p_t is not None and result.p_t <= 0.05 and result.difference > 0
        held += low <= difference <= high
        width += high - low
    return found / runs, by_t / runs, held / runs, width / runs


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(list(head)), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def percent(*shares: float) -> list[str]:
    """Shares as they stand in the tables."""
    return [f"{100 * share:.1f} %" for share in shares]


def sizes(runs: int) -> str:
    """The table of equal arms."""
    like: tuple[Scope, Scope] = ("tasks-like-these", "these-tasks")
    kinds = [(kind, scope) for scope in like for kind in ("plain", "unequal", "copied", "groups", "tasks")]
    valid = [each for each in kinds if each[1] == like[0] or each[0] not in ("groups", "tasks")]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        shares = pool.map(equal_arms, *zip(*valid, strict=True), [runs] * len(valid))
        rows = [[*each, *percent(*found)] for each, found in zip(valid, shares, strict=True)]
    return table(("equal arms", "scope", "better", "worse", "either, by pooling trials"), rows)


def coverages(runs: int) -> str:
    """The table of estimates."""
    shapes = {"Beta(2, 2)": (2.0, 2.0), "Beta(0.5, 0.5)": (0.5, 0.5), "Beta(9, 0.5)": (9.0, 0.5)}
    rows = []
    for n, k in ((5, 5), (10, 5), (20, 1), (20, 5), (50, 5)):
        for name, shape in shapes.items():
            *shares, width = coverage(n, k, shape, runs)
            rows.append([n, k, name, *percent(*shares), f"{width:.3f}"])
    return table(("tasks", "trials", "rates", "ours", "mean +- 1.96 SE", "Wilson on all trials", "our width"), rows)


def powers(runs: int) -> str:
    """The table of differing arms."""
    rows = []
    scopes: tuple[Scope, Scope] = ("tasks-like-these", "these-tasks")
    cells = [(n, difference, scope) for scope in scopes for n in (3, 10, 20, 50) for difference in (0.0, 0.1, 0.2, 0.3)]
    cells = [each for each in cells if each[0] >= FEWEST_UNITS or each[2] == "these-tasks"]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(differing_arms, *zip(*cells, strict=True), [runs] * len(cells))
        for (n, difference, scope), (found, by_t, held, width) in zip(cells, results, strict=True):
            t = percent(by_t)[0] if scope == "tasks-like-these" else ""
            rows.append([scope, n, f"{difference:+.1f}", *percent(found), t, *percent(held), f"{width:.3f}"])
    return table(("scope", "tasks x 5", "true difference", "called better", "by t", "covered", "width"), rows)


def recoveries(runs: int) -> str:
    """The table of whole runs, with the binomial error of each share."""
    rows = []
    for (what, scope), held in recovery(range(runs)).items():
        # Agresti and Coull's: none missed of 500 is no certainty.
        shrunk = (held * runs + 2) / (runs + 4)
        rows.append([what, scope, *percent(held), f"+- {100 * math.sqrt(shrunk * (1 - shrunk) / (runs + 4)):.1f}"])
    return table((f"{runs} runs of {TASKS} tasks x {TRIALS} trials", "scope", "covered", "standard error"), rows)


def main() -> None:
    """Write the tables anew."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    started = time.monotonic()
    fewer = runs // 4
    tables = [f"{each}\n" for each in (sizes(runs), coverages(fewer), powers(fewer), recoveries(fewer))]
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    errors = [100 * math.sqrt(0.0475 / each) for each in (runs, fewer)]
    note = (
        f"{runs} seeded runs per row of the first table, {fewer} of the others: a share near 5 % or 95 % has a "
        f"standard error of {errors[0]:.1f} and {errors[1]:.1f} points."
    )
    PAGE.write_text(f"{before}{BEGIN}\n\n{note}\n\n" + "\n".join(tables) + f"\n{END}{after}", "utf-8")
    print(f"{PAGE.name} written in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
