"""`mcptrials power` on the command line, and what the screens say of small samples."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import adds, asks, make_project
from tests.hand_made import BASE, NEW, manifest, record, run_of, task


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of seven tasks, two groups among them, and one that is held out; and runs written by hand."""
    groups = ["a", "a", None, None, None, None, None]
    tasks = [asks(f"t{i}", **({"group": group} if group else {})) for i, group in enumerate(groups)]
    tasks.append(asks("secret", split="held_out"))
    folder = make_project(tmp_path_factory.mktemp("power"), tasks, {each["id"]: adds("5") for each in tasks})
    ids = [f"t{i}" for i in range(8)]
    verdicts = [
        (each, trial, "passed" if (i + trial) % 3 else "failed") for i, each in enumerate(ids) for trial in (1, 2)
    ]
    records = [record(*each, arm=arm) for each in verdicts for arm in (BASE, NEW)]  # type: ignore[arg-type]
    run_of(folder / "runs" / "two", manifest([task(each) for each in ids], (BASE, NEW), run_id="two"), records)
    always = [record(each, trial, arm=arm) for each in ids[:6] for trial in (1, 2) for arm in (BASE, NEW)]
    run_of(folder / "runs" / "full", manifest([task(each) for each in ids[:6]], (BASE, NEW), run_id="full"), always)
    single = [record("t0", 1, tool_calls=1, input_tokens=1, duration_ms=5.0)]
    run_of(folder / "runs" / "one", manifest([task("t0")], trials=1, run_id="one"), single)
    return folder


def power(commands: Preloaded, folder: Path, *words: str) -> Any:
    ended = commands.run(folder, "power", *words, "--json")
    assert ended.err == ""
    return ended.document


def test_a_project_is_planned_for_with_its_groups_and_the_usual_noise(folder: Path, commands: Preloaded) -> None:
    ended = commands.run(folder, "power", "--effect", "60")
    assert (ended.code, ended.err) == (0, "")
    assert "project mcptrials.yaml · 7 tasks in 6 groups x 2 trials x 2 arms: 28 trials" in ended.out
    assert re.search(
        r"detects a true difference of \d+ points with 80 % power \(\d+ % \+- 1\.\d, simulated\)", ended.out
    )
    assert re.search(r"60 points +\d+ % \+- \d\.\d +\d+ +", ended.out)
    assert "at most 560 model requests, by the limits · money unknown" in ended.out
    assert "variance of a trial within its task 0.150 (assumed)" in ended.out
    assert "exact sign flips of groups" in ended.out


def test_a_run_is_planned_for_with_its_own_noise_and_without_its_project(
    folder: Path, tmp_path: Path, commands: Preloaded
) -> None:
    document = power(commands, tmp_path, str(folder / "runs" / "two"), "--effect", "60", "--trials", "1")
    data = document["data"]
    assert (document["ok"], document["command"], data["source"]["name"]) == (True, "power", "two")
    assert data["design"] == {"arms": 2, "n_tasks": 8, "n_groups": 8, "trials_per_task": 1, "n_trials": 16}
    assumed = data["assumptions"]
    assert (assumed["sigma2_from"], assumed["omega2_from"], assumed["omega2"]) == ("measured", "measured", 0)
    assert data["use"]["input_tokens"] == 1600
    assert data["use"]["cost_usd"] is data["use"]["requests"] is None
    [effect] = data["effects"]
    assert effect["se"] == pytest.approx((effect["power"] * (1 - effect["power"]) / 1000) ** 0.5, abs=0.005)


def test_a_design_that_never_decides_says_so_before_anything_is_paid(folder: Path, commands: Preloaded) -> None:  # C68
    ended = commands.run(folder, "power", "--tasks", "5", "--effect", "90")
    assert ended.code == 0
    assert "NEVER: 4 groups can never decide" in ended.out
    assert "add at least 2 more groups" in " ".join(ended.out.split())
    one = commands.run(folder, "power", "one", "--effect", "90")
    assert "run one · 1 task x 1 trial x 2 arms: 2 trials" in one.out
    assert "add at least 5 more tasks" in " ".join(one.out.split())
    assert "! too few tasks for inference: 1" in one.out


def test_costs_give_the_best_allocation(folder: Path, commands: Preloaded) -> None:
    data = power(commands, folder, "--effect", "90", "--cost-task", "10", "--cost-trial", "1")["data"]
    assert data["allocation"]["cost"] == 7 * 10 + 28
    assert data["allocation"]["trials_per_task"] in (3, 4)  # sqrt(3 * 10 / 2) = 3.9


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--effect", "0"], "--effect 0 is no difference"),
        (["--effect", "nan"], "--effect nan is no difference"),
        (["--effect", "101"], "--effect 101 is no difference"),
        (["--power", "1"], "--power 1 cannot be planned for"),
        (["--power", "nan"], "--power nan cannot be planned for"),
        (["--cost-task", "1"], "--cost-task and --cost-trial go together"),
        (["--cost-task", "nan", "--cost-trial", "1"], "costs of nan a task and 1 a trial make no plan"),
        (["--cost-task", "1", "--cost-trial", "0"], "costs of 1 a task and 0 a trial make no plan"),
        (["--tasks", "0"], "Invalid value for '--tasks'"),
        (["--trials", "999999"], "Invalid value for '--trials'"),
        (["nothing"], "there is no run 'nothing'"),
    ],
)
def test_what_cannot_be_meant_is_an_error_in_one_line(
    folder: Path, commands: Preloaded, words: list[str], what: str
) -> None:
    ended = commands.run(folder, "power", *words)
    assert (ended.code, ended.out) == (2, "")
    assert what in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("words", [["--tasks", "100000"], ["--trials", "10000", "--tasks", "6"], ["--power", "0.99"]])
def test_large_plans_are_reckoned_in_seconds(folder: Path, commands: Preloaded, words: list[str]) -> None:
    data = power(commands, folder, "--effect", "80", *words)["data"]
    assert data["effects"][0]["power"] <= 1
    json.dumps(data, allow_nan=False)


def test_all_that_passed_may_still_fail_and_both_screens_say_how_often(folder: Path, commands: Preloaded) -> None:
    """1 - 0.05^(1/6)."""
    line = "all 6 tasks always passed; up to 39.3 % of tasks like these may still fail"
    shown = commands.run(folder, "show", "full").out
    assert f"base · loop · scripted:s.yaml: {line}" in shown
    compared = commands.run(folder, "compare", "full").out
    assert f"base: {line}" in compared
    assert f"new: {line}" in compared
    assert "always passed" not in commands.run(folder, "show", "one").out


def test_one_is_counted_as_one_and_an_interval_names_what_it_is_about(folder: Path, commands: Preloaded) -> None:
    shown = commands.run(folder, "show", "one").out
    assert "1 trial · 1 tool call, 0 tool errors, 0 protocol errors · 1 token in, 10 out" in shown
    assert "interval for this task only" in shown
    assert "! too few tasks for inference: 1; at least 5 are needed, 20 are a start" in shown
    assert re.search(r"success +100\.0 % +\[20\.7, 100\.0\] +1 +1 of 1 +1 +0", shown)
    compared = commands.run(folder, "compare", "two").out
    assert re.search(r"base +\d+\.\d % +\[[\d., ]+\] +8 +\d+ of 16 +[\d.]+ +0 ", compared)
    assert not re.search(r"\b1 (trials|tasks|calls|tools|warnings)\b", shown + compared)


def test_a_held_out_run_that_is_planned_with_is_a_look(tmp_path: Path, commands: Preloaded) -> None:
    records = [record("t0", 1), record("t0", 2, "failed")]
    run_of(tmp_path / "runs" / "r", manifest([task("t0")], run_id="r", split="held_out"), records)
    assert commands.run(tmp_path, "power", "runs/r", "--effect", "50").code == 0
    [look] = (tmp_path / "held_out_looks.jsonl").read_text().splitlines()
    assert (json.loads(look)["command"], json.loads(look)["run_id"]) == ("power", "r")
