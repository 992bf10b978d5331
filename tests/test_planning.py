"""What a planned comparison can find: measured or assumed noise, the very test simulated, and what it would cost."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower
from tests.hand_made import BASE, NEW, manifest, record, run_of, task

from mcptrials.errors import UsageError
from mcptrials.planning import Ground, Wish, ground_of_project, ground_of_run, reckon
from mcptrials.planning.ground import Use
from mcptrials.planning.noise import ASSUMED, Noise
from mcptrials.project import Project
from mcptrials.stats import compare_paired, sign_flip_p, simulated_power
from mcptrials.stats.chance import Chances, Experiment, repeated
from mcptrials.stats.power import PairedDesign
from mcptrials.stats.simulation import _rates, _sign_flip_ps
from mcptrials.store import Run
from mcptrials.trial import Arm


def ground(n_tasks: int = 12, trials: int = 3, **keys: Any) -> Ground:
    values: dict[str, Any] = {
        "sizes": (1,) * n_tasks,
        "noise": ASSUMED,
        "use": Use(),
        "seed": 0,
        "unequal": False,
    } | keys
    return Ground(
        {"kind": "project", "name": "p", "run_dir": None, "split": "train", "scripted": False}, trials=trials, **values
    )


def earlier(folder: Path, *arms: tuple[Arm, Mapping[str, Sequence[Any]]], **groups: str) -> Run:
    """A run of some arms: by task, 1, 0, or None for a trial that is not scored."""
    verdicts: Any = {1: "passed", 0: "failed", None: "invalid"}
    ids = list(dict.fromkeys(task_id for _, passes in arms for task_id in passes))
    trials = max(len(values) for _, passes in arms for values in passes.values())
    records = [
        record(task_id, number, verdicts[passed], arm=arm)
        for arm, passes in arms
        for task_id, values in passes.items()
        for number, passed in enumerate(values, 1)
    ]
    tasks = [task(each, group=groups.get(each)) for each in ids]
    return run_of(folder, manifest(tasks, [arm for arm, _ in arms], trials, seed=3), records)


def test_the_simulation_decides_as_compare_does_with_and_without_groups() -> None:
    """Its own draws, judged by the public comparison with its groups."""
    design, runs = PairedDesign(0.05, (0.15, 0.15), (4, 4)), 60
    for sizes in ([1] * 12, [3, 1, 2, 2, 1, 1, 2, 4]):
        generator = np.random.default_rng(5)
        a, b = _rates(design, (runs, np.array(sizes)), 0.3, generator)
        passes_b = generator.binomial(4, b)
        passes_a = generator.binomial(4, a)
        groups = {str(i): str(g) for i, g in enumerate(np.repeat(range(len(sizes)), sizes))}
        better = sum(
            compare_paired(
                {str(i): [1] * c + [0] * (4 - c) for i, c in enumerate(row_a.tolist())},
                {str(i): [1] * c + [0] * (4 - c) for i, c in enumerate(row_b.tolist())},
                groups,
            ).verdict
            == "better"
            for row_a, row_b in zip(passes_a, passes_b, strict=True)
        )
        assert 0 < better < runs
        assert simulated_power(design, sizes, 0.3, seed=5, runs=runs) == better / runs


@pytest.mark.parametrize(("units", "largest"), [(1, 1), (6, 1), (12, 5), (100, 5), (7, 40_000)])
def test_all_simulated_comparisons_at_once_have_the_p_of_each(units: int, largest: int) -> None:
    rows = np.random.default_rng(units).integers(-largest, largest + 1, size=(40, units))
    rows[0] = 0
    assert _sign_flip_ps(rows) == pytest.approx([sign_flip_p(row.tolist()) for row in rows], abs=1e-12)


def test_grouped_tasks_find_less_than_as_many_independent_ones() -> None:
    design = PairedDesign(trials=(3, 3))
    assert simulated_power(design, [1] * 30, 0.3) > simulated_power(design, [3] * 10, 0.3) + 0.2
    assert simulated_power(design, [20] * 5, 0.9, runs=50) == 0
    assert repeated((1, 3), 10) == (1, 3, 1, 3, 1, 1)
    assert repeated((2, 5), 1) == (1,)


def test_by_formula_groups_are_the_units_and_single_tasks_equal_the_reference() -> None:
    found = Chances(0).of(Experiment((1,) * 300, ASSUMED.design(2)), 0.05)
    sd = math.sqrt(0.1 + 2 * 0.15 / 2)
    assert (found.method, found.se) == ("formula", None)
    assert found.power == pytest.approx(TTestPower().power(0.05 / sd, 300, 0.05), abs=1e-9)
    grouped = Chances(0).of(Experiment((4,) * 300, ASSUMED.design(2)), 0.05)
    sd = math.sqrt(0.1 + 2 * 0.15 / 2 / 4)
    assert grouped.power == pytest.approx(TTestPower().power(0.05 / sd, 300, 0.05), abs=1e-9)


def test_what_is_detectable_and_what_is_needed_have_the_power_that_was_asked_for() -> None:
    chances, plan = Chances(1), Experiment((1,) * 15, Noise(0.02, 0.15).design(3))
    least = chances.detectable(plan, 0.8)
    assert least is not None
    assert chances.of(plan, least).power == pytest.approx(0.8, abs=0.05)
    tasks = chances.tasks_needed(plan, 0.2, 0.8)
    assert tasks is not None
    assert simulated_power(plan.design, tasks, 0.2, seed=77, runs=2000) == pytest.approx(0.8, abs=0.05)
    trials = chances.trials_needed(plan, 0.2, 0.8)
    assert trials is not None
    assert trials > 3
    assert simulated_power(plan.tried(trials).design, 15, 0.2, seed=77, runs=2000) == pytest.approx(0.8, abs=0.05)


def test_fewer_than_six_units_never_decide_and_are_told_what_to_add() -> None:
    found = reckon(ground(4), Wish(effect=0.3))
    assert "4 tasks can never decide" in found["never"]
    assert found["never"].endswith("add at least 2 more tasks")
    assert found["detectable"]["difference"] is None
    [effect] = found["effects"]
    assert (effect["power"], effect["method"], effect["trials_needed"]) == (0, "certain", None)
    assert effect["tasks_needed"] > 6
    assert found["warnings"] == ["too few tasks for inference: 4; at least 5 are needed, 20 are a start"]
    grouped = reckon(ground(sizes=(10, 10, 10, 10, 10)), Wish(effect=0.3))
    assert "5 groups can never decide" in grouped["never"]
    assert grouped["never"].endswith("add at least 1 more group")


def test_the_same_seed_gives_the_same_document_and_another_one_differs_within_its_error() -> None:
    wish = Wish(effect=0.5)
    one, again, other = (reckon(ground(8, seed=seed), wish) for seed in (0, 0, 1))
    assert one == again
    one, other = one["effects"][0], other["effects"][0]
    assert one["power"] != other["power"]
    assert abs(one["power"] - other["power"]) < 4 * math.hypot(one["se"], other["se"])


def test_noise_is_measured_between_variants_and_within_tasks(tmp_path: Path) -> None:
    a = {f"t{i}": [1, 1, 0, 1] if i % 2 else [0, 0, 1, 0] for i in range(6)}
    b = {f"t{i}": [1, 1, 1, 1] if i < 3 else [0, 0, 1, 0] for i in range(6)}
    found = ground_of_run(earlier(tmp_path / "r", (BASE, a), (NEW, b))).noise
    s2_a, s2_b = (fmean(variance(map(float, each)) for each in arm.values()) for arm in (a, b))
    differences = [fmean(b[each]) - fmean(a[each]) for each in a]
    assert found.sigma2 == pytest.approx((s2_a + s2_b) / 2)
    assert found.omega2 == pytest.approx(max(0, variance(differences) - s2_a / 4 - s2_b / 4))
    assert (found.sigma2_from, found.omega2_from) == ("measured", "measured")


def test_what_a_run_cannot_tell_is_assumed_and_said(tmp_path: Path) -> None:
    mixed = {f"t{i}": [1, 0, 1] for i in range(6)}
    other_model = BASE.model_copy(update={"variant": "new", "model": "openai:m"})
    cases: tuple[tuple[str, list[tuple[Arm, Mapping[str, Sequence[Any]]]], tuple[str, str]], ...] = (
        ("one arm", [(BASE, mixed)], ("measured", "assumed")),
        ("two models", [(BASE, mixed), (other_model, mixed)], ("measured", "assumed")),
        ("all pass", [(BASE, {f"t{i}": [1, 1] for i in range(6)})], ("assumed", "assumed")),
        ("one trial", [(BASE, {f"t{i}": [i % 2] for i in range(6)})], ("assumed", "assumed")),
        ("few tasks", [(BASE, {f"t{i}": [1, 0] for i in range(4)})], ("assumed", "assumed")),
    )
    for name, arms, expected in cases:
        known = ground_of_run(earlier(tmp_path / name, *arms))
        assert (known.noise.sigma2_from, known.noise.omega2_from) == expected, name
        lines = reckon(known, Wish(effect=0.9))["assumptions"]["lines"]
        assert any("between tasks 0.100 (assumed)" in line for line in lines), name
        assert any("the run cannot tell" in line for line in lines) == (expected[0] == "assumed"), name


def test_a_run_gives_its_tasks_groups_and_use_and_what_it_does_not_know_is_none(tmp_path: Path) -> None:
    passes: dict[str, Sequence[Any]] = {"a": [1, 0], "b": [0, 0], "c": [1, 1], "lost": [None, None]}
    found = ground_of_run(earlier(tmp_path / "r", (BASE, passes), a="g", b="g"))
    assert (found.sizes, found.trials, found.seed) == ((2, 1), 2, 3)
    assert found.warnings == ("1 task without a scored trial left out",)
    use = reckon(found, Wish(effect=0.5, tasks=10))["use"]
    assert use == {
        "requests": None,
        "requests_max": None,
        "input_tokens": 4000,
        "output_tokens": 400,
        "cost_usd": None,
    }


def test_a_run_without_a_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trial is scored: nothing can be measured"):
        ground_of_run(earlier(tmp_path / "r", (BASE, {"t": [None, None]})))


def test_the_allocation_costs_no_more_and_is_no_worse() -> None:
    wish = Wish(effect=0.6, cost_task=8, cost_trial=0.25)
    planned = reckon(ground(20, 1), wish)
    found = planned["allocation"]
    # Of a comparison: sqrt(2 * 0.15 / 0.1 * 8 / (2 * 0.25))
    assert found["optimum"] == pytest.approx(math.sqrt(3 * 16))
    assert found["trials_per_task"] == 7
    assert found["cost"] == 20 * (8 + 2 * 0.25)
    same = found["same_cost"]
    assert same["cost"] == same["n_tasks"] * (8 + 2 * 7 * 0.25) <= found["cost"]
    assert same["detectable"] < planned["detectable"]["difference"]
    assert found["for_effect"]["cost"] == found["for_effect"]["n_tasks"] * (8 + 2 * 7 * 0.25)
    assert reckon(ground(6), Wish(effect=0.9))["allocation"] is None


@pytest.mark.parametrize("costs", [(0, 1), (8, 1e-9), (0, 1e9), (1e9, 1)])
@pytest.mark.parametrize("noise", [Noise(0, 0.25), Noise(0.3, 0.0001), ASSUMED])
def test_any_prices_leave_tasks_enough_to_decide(costs: tuple[float, float], noise: Noise) -> None:
    wish = Wish(effect=0.9, cost_task=costs[0], cost_trial=costs[1])
    found = reckon(ground(3, 2, noise=noise), wish)["allocation"]
    assert found["trials_per_task"] >= 1
    assert found["same_cost"]["n_tasks"] >= 6


def test_a_project_without_a_task_to_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mcptrials.yaml").write_text(
        "{version: 1, servers: {s: {command: x}}, models: ['scripted:s.yaml'], tasks: [t.yaml]}"
    )
    (tmp_path / "s.yaml").write_text("{tasks: {t: {steps: [{answer: '5'}]}}}")
    (tmp_path / "t.yaml").write_text(
        "[{id: t, prompt: '?', split: held_out, graders: [{type: exact_answer, expected: '5'}]}]"
    )
    with pytest.raises(UsageError, match="a plain run has no task: all are held out, or drafts"):
        ground_of_project(Project.load(tmp_path / "mcptrials.yaml"))
