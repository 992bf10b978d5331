"""Comparing runs and arms: what is paired, what is refused, and which verdict holds."""

import math
import random
import time
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import Any

import pytest
from scipy.stats import binom, binomtest, ttest_rel
from scipy.stats import t as student_t
from statsmodels.stats.power import TTestPower
from tests.hand_made import BASE, HASH, NEW, manifest, only, record, run_of, side, task

from mcptrials import compare
from mcptrials.comparison.success import surviving
from mcptrials.encoding import dump_line
from mcptrials.errors import UsageError
from mcptrials.planning import Wish, ground_of_run, reckon
from mcptrials.record import Record
from mcptrials.stats import average_tasks, compare_paired
from mcptrials.store import Run
from mcptrials.trial import Arm


def test_the_difference_is_b_less_a_over_the_tasks_of_both(tmp_path: Path) -> None:
    """Twelve tasks of four trials; the numbers are those of an enumeration of all 2^12 sign flips."""
    c_a, c_b = (1, 2, 4, 0, 3, 2, 4, 1, 3, 2, 4, 2), (2, 3, 4, 1, 4, 2, 4, 3, 3, 4, 4, 2)
    runs = [
        side(tmp_path / name, {f"t{i}": [1] * c + [0] * (4 - c) for i, c in enumerate(counts)})
        for name, counts in (("a", c_a), ("b", c_b))
    ]
    found = only(compare(*runs))
    assert (found["a"]["rate"], found["b"]["rate"]) == pytest.approx((sum(c_a) / 48, sum(c_b) / 48))
    assert found["difference"] == pytest.approx((sum(c_b) - sum(c_a)) / 48)
    flips = [(b - a) / 4 for a, b in zip(c_a, c_b, strict=True)]
    seen = abs(sum(flips))
    extreme = sum(
        abs(sum(-d if bits >> i & 1 else d for i, d in enumerate(flips))) >= seen - 1e-9 for bits in range(2**12)
    )
    assert found["p_exact"] == pytest.approx(extreme / 2**12)
    assert (found["verdict"], found["n_tasks"], found["n_changed"]) == ("better", 12, sum(d != 0 for d in flips))
    assert only(compare(*reversed(runs)))["verdict"] == "worse"
    assert only(compare(*reversed(runs)))["difference"] == pytest.approx(-found["difference"])


@pytest.mark.parametrize(
    ("field", "other", "said"),
    [
        ("model", {"arm": Arm(variant="base", host="loop", model="openai:m")}, '"scripted:s.yaml"'),
        ("host", {"keys": {"agent_harness": "loop-2"}}, "loop-2"),
        ("effective_model", {"keys": {"effective_model": "m-2026"}}, "m-2026"),
        ("limits", {"limits": {"turns": 3}}, '{"turns":3}'),
        ("policies", {"servers": {"s": {"tools": {"hide": ["x"]}}}}, "hide"),
        ("judges", {"judges": [{"model": "j"}]}, "judges differs"),
    ],
)
def test_an_unequal_condition_is_refused_by_name_unless_it_is_allowed(
    tmp_path: Path, field: str, other: Any, said: str
) -> None:
    stated: dict[str, Any] = {"limits": {"turns": 9}, "servers": {"s": {"tools": {"hide": []}}}}
    a = side(tmp_path / "a", {"t": [1]}, keys={"effective_model": "m-2025"}, **stated)
    keys = {"effective_model": "m-2025"} | other.pop("keys", {})
    b = side(tmp_path / "b", {"t": [0]}, keys=keys, **stated | other)
    with pytest.raises(UsageError) as caught:
        compare(a, b)
    assert f"{field} differs" in str(caught.value)
    assert said in str(caught.value)
    assert f"--allow {field}" in str(caught.value)
    assert [each["field"] for each in only(compare(a, b, allow=[field]))["conditions"]] == [field]


def test_a_verdict_must_survive_what_was_not_scored(tmp_path: Path) -> None:
    a = side(tmp_path / "a", {f"t{i}": [0, 0] for i in range(10)})
    whole = side(tmp_path / "b", {f"t{i}": [1, 1] for i in range(10)})
    torn = side(tmp_path / "c", {f"t{i}": [1, 1] if i < 5 else [1, None] for i in range(10)})
    lost = side(tmp_path / "d", {f"t{i}": [1, 1] if i < 4 else [None, None] for i in range(10)})
    assert only(compare(a, whole))["verdict"] == "better"
    assert only(compare(a, torn))["verdict"] == "better"
    found = only(compare(a, lost))
    assert found["verdict"] == "inconclusive"
    assert found["b"]["share_not_scored"] == 0.6
    assert (found["worst_case"]["against"]["difference"], found["worst_case"]["for"]["difference"]) == (0.4, 1.0)


@pytest.mark.parametrize("passes", [[None, None], []])
def test_nothing_scored_gives_no_number(tmp_path: Path, passes: Any) -> None:  # C66
    a = side(tmp_path / "a", {"t": [1, 1], "u": [1, 1]})
    b = side(tmp_path / "b", {"t": passes, "u": passes})
    if not passes:
        with pytest.raises(UsageError, match="no task was tried on both sides: t, u"):
            compare(a, b)
        return
    found = only(compare(a, b))
    assert (found["verdict"], found["difference"], found["ci_low"], found["p_exact"]) == (
        "inconclusive",
        None,
        None,
        None,
    )
    assert (found["b"]["rate"], found["changed_tasks"]) == (None, [])
    assert {row["a"] for row in found["measures"]} == {None}


def test_one_task_is_too_few_for_a_verdict(tmp_path: Path) -> None:
    found = only(compare(side(tmp_path / "a", {"t": [0] * 9}), side(tmp_path / "b", {"t": [1] * 9})))
    assert (found["difference"], found["verdict"]) == (1.0, "inconclusive")
    assert any("too few tasks for inference: 1" in each for each in found["warnings"])


def test_runs_without_a_common_task_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="they have no task in common"):
        compare(side(tmp_path / "a", {"t": [1]}), side(tmp_path / "b", {"u": [1]}))


def arms_run(folder: Path, *variants: str, rate: Any = None) -> Run:
    """Ten tasks by several arms, of which `rate` fails all."""
    arms = [Arm(variant=name, host="loop", model="scripted:s.yaml") for name in variants]
    tasks = [task(f"t{i}") for i in range(10)]
    records = [
        record(each.id, 1, "failed" if arm.variant == rate else "passed", arm=arm, **HASH)
        for arm in arms
        for each in tasks
    ]
    return run_of(folder, manifest(tasks, arms, 1, run_id=folder.name), records)


def test_several_arms_are_compared_with_the_first_and_pay_for_their_number(tmp_path: Path) -> None:  # C74
    run = arms_run(tmp_path / "r", "base", "worst", "other", rate="worst")
    document = compare(run)
    assert [each["b"]["variant"] for each in document["comparisons"]] == ["worst", "other"]
    first, second = document["comparisons"]
    assert (first["verdict"], second["verdict"]) == ("worse", "inconclusive")
    assert first["p_adjusted"] == pytest.approx(2 * first["p_exact"])
    assert first["concurrency"]["concurrent"] is True


@pytest.mark.parametrize(("others", "verdict"), [(1, "better"), (3, "better"), (4, "inconclusive")])
def test_of_several_arms_a_verdict_must_survive_their_number_and_what_was_not_scored(
    tmp_path: Path, others: int, verdict: str
) -> None:
    """Eight tasks give p = 2/2^8; a trial that is not scored could leave seven: four times 2/2^7 is above 5 %."""
    ids = [f"t{i}" for i in range(8)]
    passes: dict[str, Any] = {"base": dict.fromkeys(ids, (0, 0)) | {"t0": (1, 0)}}
    passes["new"] = {**dict.fromkeys(ids, (1, 1)), "t0": (1, None)}
    passes |= {f"same{i}": passes["base"] for i in range(others - 1)}
    arms = {name: Arm(variant=name, host="loop", model="scripted:s.yaml") for name in passes}
    verdicts: Any = {1: "passed", 0: "failed", None: "invalid"}
    records = [
        record(task_id, number, verdicts[passed], arm=arms[name], **HASH)
        for name, by_task in passes.items()
        for task_id, values in by_task.items()
        for number, passed in enumerate(values, 1)
    ]
    run = run_of(tmp_path / "r", manifest([task(each) for each in ids], tuple(arms.values()), run_id="r"), records)
    first = compare(run)["comparisons"][0]
    assert (first["p_exact"], first["worst_case"]["against"]["p_exact"]) == pytest.approx((2 / 2**8, 2 / 2**7))
    assert first["verdict"] == verdict
    if others > 1:
        assert first["p_adjusted"] == pytest.approx(others * 2 / 2**8)
    assert ("could be 0.0625 if trials that are not scored were" in first["reason"]) == (verdict == "inconclusive")


def test_arms_are_named_by_variant_label_or_id(tmp_path: Path) -> None:
    arms_run(tmp_path / "r:1", "base", "new")
    names = [f"{tmp_path}/r:1:{name}" for name in ("new", NEW.id, NEW.label)]
    for name in names:
        found = only(compare(f"{tmp_path}/r:1:base", name))
        assert (found["a"]["variant"], found["b"]["variant"]) == ("base", "new")
    with pytest.raises(UsageError, match="has no arm 'nwe'; did you mean 'new'"):
        compare(f"{tmp_path}/r:1:base", f"{tmp_path}/r:1:nwe")
    with pytest.raises(UsageError, match="named twice"):
        compare(f"{tmp_path}/r:1:base", f"{tmp_path}/r:1:{BASE.id}")
    with pytest.raises(UsageError, match="the run has 2 arms"):
        compare(f"{tmp_path}/r:1", f"{tmp_path}/r:1:new")


def test_a_run_of_one_arm_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a second run"):
        compare(side(tmp_path / "a", {"t": [1]}))


def test_what_trials_spend_is_compared_task_by_task(tmp_path: Path) -> None:  # C75
    """The interval is that of a paired t test: scipy's."""
    used = {"a": [100, 220, 310, 150, 400, 90], "b": [80, 200, 250, 160, 300, 70]}
    runs = []
    for name, values in used.items():
        tasks = [task(f"t{i}") for i in range(6)]
        records = [record(f"t{i}", 1, input_tokens=n - 10, **HASH) for i, n in enumerate(values)]
        runs.append(run_of(tmp_path / name, manifest(tasks, trials=1, run_id=name), records))
    rows = {row["name"]: row for row in only(compare(*runs))["measures"]}
    expected = ttest_rel(used["b"], used["a"]).confidence_interval(0.95)
    tokens = rows["tokens"]
    assert (tokens["ci_low"], tokens["ci_high"]) == pytest.approx((expected.low, expected.high))
    share = fmean(used["a"])
    assert tokens["relative_ci"] == pytest.approx([expected.low / share, expected.high / share])
    assert tokens["relative"] == pytest.approx(sum(used["b"]) / sum(used["a"]) - 1)
    assert rows["cost_usd"]["a"] is None
    assert (rows["tool_calls"]["difference"], rows["tool_calls"]["n_tasks"]) == (0, 6)


@pytest.mark.parametrize(("before", "after"), [([1, 0], [1, 1]), ([0, 1], [0, 0])])
def test_the_transcripts_of_a_task_that_moved_show_what_moved(tmp_path: Path, before: Any, after: Any) -> None:
    """Of the side with both verdicts the one that the other side did not have; half of the trials is no flip."""
    [row] = only(compare(side(tmp_path / "a", {"t": before}), side(tmp_path / "b", {"t": after})))["changed_tasks"]
    assert row["transcripts"]["a"].endswith(f"transcripts/t-2-{BASE.id}-1.jsonl")
    assert row["flipped"] is (sum(after) == 2)


def test_one_unknown_trial_makes_what_its_task_spent_unknown(tmp_path: Path) -> None:
    runs = []
    for name, last in (("a", 70), ("b", None)):
        used = {"t0": (10, 20), "t1": (40, 60), "t2": (30, last)}
        tasks = [task(each) for each in used]
        records = [
            record(t, n, input_tokens=each, **HASH) for t, both in used.items() for n, each in enumerate(both, 1)
        ]
        runs.append(run_of(tmp_path / name, manifest(tasks, run_id=name), records))
    [tokens] = [row for row in only(compare(*runs))["measures"] if row["name"] == "tokens"]
    assert (tokens["n_tasks"], tokens["difference"]) == (2, 0)


def test_a_verdict_that_one_worst_case_overturns_does_not_hold() -> None:
    found = compare_paired({f"t{i}": [0] for i in range(8)}, {f"t{i}": [1] for i in range(8)})
    assert found.verdict == "better"
    worst = {"against": {"verdict": "inconclusive"}, "for": {"verdict": "better"}}
    assert surviving(found, worst, 1).verdict == "inconclusive"
    assert surviving(found, {"against": worst["for"], "for": worst["for"]}, 1) is found


def test_a_group_that_is_called_as_a_task_is_does_not_take_that_task_in(tmp_path: Path) -> None:
    """As three units: their differences of a trial's tokens are (10 + 20) / 2, 40 and 70 of two tasks, one and one."""
    tasks = [task("t0", group="t2"), task("t1", group="t2"), task("t2"), task("t3")]
    runs = []
    for name, more in (("a", (0, 0, 0, 0)), ("b", (10, 20, 40, 70))):
        records = [record(f"t{i}", 1, input_tokens=100 + extra, **HASH) for i, extra in enumerate(more)]
        runs.append(run_of(tmp_path / name, manifest(tasks, trials=1, run_id=name), records))
    [tokens] = [row for row in only(compare(*runs))["measures"] if row["name"] == "tokens"]
    units = average_tasks([10, 20, 40, 70], 4, ["g", "g", "x", "y"])
    half = student_t(units.df).ppf(0.975) * units.se
    assert (tokens["ci_low"], tokens["ci_high"]) == pytest.approx((35 - half, 35 + half))


def listed(*tools: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"preflight": {"base": {"s": {"version": "1", "instructions": None, "tools": list(tools), **facts}}}}


def test_the_tool_lists_are_compared_as_the_models_saw_them(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": "old"}}}
    search = {"name": "search", "description": "Search.", "inputSchema": schema}
    other = {**search, "inputSchema": {"type": "object", "properties": {"q": {"type": "string", "description": "new"}}}}
    hidden = {"base": {"tools": {"drop": {"hide": True}, "search": {"name": "find"}}}}
    a = side(tmp_path / "a", {"t": [1]}, **listed(search, {"name": "drop"}))
    b = side(tmp_path / "b", {"t": [1]}, overrides=hidden, **listed(other, {"name": "drop"}, version="2"))
    tools = only(compare(a, b))["tools"]
    assert tools["known"] is True
    assert [(each["subject"], each["path"], each["before"], each["after"]) for each in tools["changes"]] == [
        ("s", "$.version", "1", "2"),
        ("s/search", "$.name", "search", "find"),
        ("s/search", "$.inputSchema.properties.q.description", "old", "new"),
        ("s/drop", "$", {"name": "drop", "naming": "bare"}, None),
    ]


def test_first_calls_and_flips_say_where_to_look(tmp_path: Path) -> None:
    tasks = [task(f"t{i}", expected_tools=["s/get"]) for i in range(4)]

    def run(name: str, first: str, verdict: Any) -> Run:
        records = [record(each.id, 1, verdict, tool_sequence=(first,), **HASH) for each in tasks]
        return run_of(tmp_path / name, manifest(tasks, trials=1, run_id=name), records)

    found = only(compare(run("a", "search", "failed"), run("b", "get", "passed")))
    assert found["first_calls"]["a"] == {"shares": {"search": 1.0}, "wrong": 1.0, "n_judged": 4}
    assert found["first_calls"]["b"]["wrong"] == 0.0
    flipped = found["changed_tasks"][0]
    assert flipped["flipped"] is True
    assert flipped["transcripts"]["b"] == str(tmp_path / "b" / f"transcripts/t0-1-{BASE.id}-1.jsonl")


def test_classes_and_groups_are_compared_by_themselves(tmp_path: Path) -> None:
    tasks = [task(f"t{i}", expects="abstain" if i < 3 else "act", group=f"g{i % 2}") for i in range(6)]
    passes = {each.id: [int(each.expects == "act")] for each in tasks}
    a, b = (
        side(tmp_path / name, values, tasks=tasks)
        for name, values in (("a", passes), ("b", {task_id: [1] for task_id in passes}))
    )
    rows = {(row["by"], row["name"]): row["difference"] for row in only(compare(a, b))["strata"]}
    assert rows["expects", "abstain"] == 1.0
    assert rows["expects", "act"] == 0.0
    assert ("group", "g0") in rows


def test_runs_apart_in_time_say_so(tmp_path: Path) -> None:
    a, b = (
        side(tmp_path / name, {"t": [1]}, keys={"started_at": f"2026-11-0{day}T00:00:00Z"})
        for name, day in (("a", 1), ("b", 4))
    )
    found = only(compare(a, b))
    assert found["concurrency"] == {"concurrent": False, "how": "two runs, 3.0 days apart", "gap_hours": 72.0}
    assert "not concurrent" in found["warnings"][0]


@pytest.mark.parametrize("margin", [0, -0.1, 1.5, float("nan")])
def test_a_margin_is_a_share(tmp_path: Path, margin: float) -> None:
    a, b = (side(tmp_path / name, {"t": [1]}) for name in "ab")
    with pytest.raises(UsageError, match="margin"):
        compare(a, b, margin=margin)


def test_two_large_runs_are_compared_in_seconds(tmp_path: Path) -> None:
    """2,000 trials each in half a second on an idle machine, by the time that this process works; 10,000 take 2.2 s."""
    tasks = [task(f"t{i}") for i in range(100)]
    folders = []
    for name, modulus in (("a", 5), ("b", 4)):
        first = record("t0", 1, "passed", **HASH).model_dump()
        records = [
            Record.model_construct(
                **first | {"task_id": each.id, "trial": k, "passed": bool(k % modulus), "verdict": "passed"}
            )
            for each in tasks
            for k in range(1, 21)
        ]
        folders.append(run_of(tmp_path / name, manifest(tasks, trials=20, run_id=name), records).folder)
    began_s = time.process_time()
    found = only(compare(*folders))
    assert time.process_time() - began_s < 1.5
    assert found["a"]["n_trials"] == 2_000
    assert found["difference"] == pytest.approx(15 / 20 - 16 / 20)


def test_the_power_line_says_what_it_would_take(tmp_path: Path) -> None:
    """The tasks are those of statsmodels for a paired t test of the same spread."""
    passes = [(0, 1), (1, 1), (0, 1), (1, 0), (0, 0), (1, 1), (0, 1), (1, 0), (0, 0), (0, 1)]
    a, b = (side(tmp_path / name, {f"t{i}": [each[n]] for i, each in enumerate(passes)}) for n, name in enumerate("ab"))
    power = only(compare(a, b))["power"]
    differences = [y - x for x, y in passes]
    effect = fmean(differences) / stdev(differences)
    needed = TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
    assert power["more_tasks"] == math.ceil(needed) - len(passes)
    assert f"to see +20 points: {power['more_tasks']} more tasks" in power["line"]


def two_armed(folder: Path, n_tasks: int, seed: int, trials: int = 3, groups: int = 0) -> Run:
    """A run whose second arm passes more often, by draws."""
    rng = random.Random(seed)
    tasks = [task(f"t{i}", group=f"g{i % groups}" if groups else None) for i in range(n_tasks)]
    records = []
    for each in tasks:
        rate = rng.random()
        for arm, own in ((BASE, rate * 0.6), (NEW, rate * 0.6 + 0.3)):
            draws = [rng.random() < own for _ in range(trials)]
            records += [
                record(each.id, k, "passed" if drawn else "failed", arm=arm, **HASH) for k, drawn in enumerate(draws, 1)
            ]
    return run_of(folder, manifest(tasks, (BASE, NEW), trials, run_id=folder.name, seed=seed), records)


@pytest.mark.parametrize(("n_tasks", "groups"), [(8, 0), (12, 0), (20, 0), (24, 8)])
def test_the_power_line_and_the_plan_of_the_same_run_say_the_same(tmp_path: Path, n_tasks: int, groups: int) -> None:
    run = two_armed(tmp_path / "r", n_tasks, n_tasks, groups=groups)
    began_s = time.process_time()
    found = only(compare(run))
    assert time.process_time() - began_s < 3
    said, difference = found["power"], abs(found["difference"])
    planned = reckon(ground_of_run(run), Wish(effect=difference))
    [effect] = planned["effects"]
    assert said["detectable"] == planned["detectable"]["difference"]
    assert said["more_tasks"] == max(0, effect["tasks_needed"] - n_tasks)
    assert said["trials_per_task"] == effect["trials_needed"]


def test_a_detectable_difference_is_one_that_mcnemars_exact_test_detects(tmp_path: Path) -> None:
    """With one trial a task the power is a sum over the numbers of changes, of scipy's binomial tests."""
    passes = [(0, 1)] * 8 + [(1, 0)] * 3 + [(1, 1)] * 20 + [(0, 0)] * 6
    a, b = (side(tmp_path / name, {f"t{i}": [each[n]] for i, each in enumerate(passes)}) for n, name in enumerate("ab"))
    detectable = only(compare(a, b))["power"]["detectable"]
    changing = variance([y - x for x, y in passes]) + detectable**2
    up = (changing + detectable) / 2
    power = sum(
        binom.pmf(m, len(passes), changing) * binom.pmf(x, m, up / changing)
        for m in range(len(passes) + 1)
        for x in range(m // 2 + 1, m + 1)
        if binomtest(x, m).pvalue <= 0.05
    )
    assert power == pytest.approx(0.8, abs=0.05)


def test_too_few_tasks_are_told_to_be_more_however_large_the_difference(tmp_path: Path) -> None:
    a, b = (
        side(tmp_path / name, {f"t{i}": passes for i in range(4)}) for name, passes in (("a", [0, 1]), ("b", [1, 1]))
    )
    power = only(compare(a, b))["power"]
    assert power["detectable"] is None
    assert power["more_tasks"] > 2
    assert power["line"].startswith("4 tasks can never decide: the test needs 6 that differ; to see +50 points: ")


def test_errors_that_one_side_alone_has_are_told(tmp_path: Path) -> None:
    def run(name: str, text: str) -> Run:
        tasks = [task("t")]
        made = run_of(tmp_path / name, manifest(tasks, trials=1, run_id=name), [record("t", 1, tool_errors=1, **HASH)])
        [found] = made.records()
        key = {"at_ms": 1, "call_id": "1", "server": "s", "tool": "get"}
        asked = {
            "shown_name": "get",
            "arguments": {},
            "raw_arguments": "{}",
            "unknown_tool": False,
            "argument_error": None,
        }
        answered = {"ms": 1, "status": "tool_error", "result": None, "error": None, "shown": text}
        lines = [{"kind": "tool_call", **key, **asked}, {"kind": "tool_result", **key, **answered}]
        (made.folder / "transcripts").mkdir()
        (made.folder / found.transcript).write_bytes(b"".join(map(dump_line, lines)))
        return made

    errors = only(compare(run("a", "no such key"), run("b", "x" * 1000)))["errors"]
    assert errors["only_a"] == [{"tool": "get", "text": "no such key", "trials": 1}]
    assert errors["only_b"] == [{"tool": "get", "text": "x" * 200 + "[...]", "trials": 1}]


def test_a_manifest_out_of_shape_is_no_reason_to_fail(tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "preflight": {"base": {"s": {"tools": [5, {"name": 3}]}, "t": 7}},
        "servers": 7,
        "overrides": [],
        "limits": None,
    }
    found = only(compare(side(tmp_path / "a", {"t": [1]}, **odd), side(tmp_path / "b", {"t": [0]})))
    assert found["tools"]["known"] is False
    assert found["difference"] == -1
