"""The summary's numbers, against numbers worked out by hand."""

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from tests.hand_made import BASE, NEW, manifest, record, run_of, task

from mcptrials.encoding import dump_line
from mcptrials.events import CallAsked, CallStatus, ToolAnswered, ToolCalled
from mcptrials.record import Record
from mcptrials.report import summarise
from mcptrials.task import Task

ABC = [task("a"), task("b"), task("c")]
SIX = [
    record("a", 1), record("a", 2),
    record("b", 1), record("b", 2, "failed", cause="wrong_answer", blame="agent"),
    record("c", 1, "failed", cause="wrong_answer", blame="agent"),
    record("c", 2, "failed", cause="crash", blame="server"),
]  # fmt: skip


def summary(folder: Path, tasks: Sequence[Task], records: Sequence[Record], **keys: Any) -> dict[str, Any]:
    return summarise(run_of(folder / "run", manifest(tasks, **keys), records))


def test_success_is_the_mean_over_tasks_with_its_error_and_pass_k(tmp_path: Path) -> None:
    found = summary(tmp_path, ABC, SIX)
    [arm] = found["arms"]
    # Task means are 1, 1/2, 0: mean 1/2, standard deviation 1/2, standard error (1/2)/sqrt(3).
    assert arm["rate"] == pytest.approx(1 / 2)
    assert arm["se"] == pytest.approx(0.5 / sqrt(3))
    assert 0 < arm["ci_low"] < 0.5 < arm["ci_high"] < 1
    # Of two trials: pass@2 is 1, 1, 0; pass^2 is 1, 0, 0.
    assert arm["pass_at"] == {"1": pytest.approx(1 / 2), "2": pytest.approx(2 / 3)}
    assert arm["pass_hat"] == {"1": pytest.approx(1 / 2), "2": pytest.approx(1 / 3)}
    assert {key: arm[key] for key in ("n_tasks", "n_trials", "passed", "failed", "invalid", "pending")} == {
        "n_tasks": 3, "n_trials": 6, "passed": 3, "failed": 3, "invalid": 0, "pending": 0
    }  # fmt: skip
    assert [(row["task_id"], row["passed"], row["failed"], row["rate"]) for row in found["tasks"]] == [
        ("a", 2, 0, 1.0), ("b", 1, 1, 0.5), ("c", 0, 2, 0.0)
    ]  # fmt: skip
    assert found["complete"] is True


def test_an_uneven_number_of_trials_weighs_tasks_alike(tmp_path: Path) -> None:
    tasks = [task("a", trials=4), task("b", trials=1)]
    records = [*(record("a", n) for n in (1, 2, 3)), record("a", 4, "failed"), record("b", 1, "failed")]
    [arm] = summary(tmp_path, tasks, records)["arms"]
    assert arm["rate"] == pytest.approx((3 / 4 + 0) / 2)
    assert list(arm["pass_at"]) == ["1"]  # one task has no second trial


def test_what_was_not_scored_is_left_out_of_rates_and_bounds_them(tmp_path: Path) -> None:
    records = [
        record("a", 1), record("a", 2, "invalid", cause="rate_limit", blame="provider"),
        record("b", 1), record("b", 2, "failed"),
        record("c", 1, "pending", cause="human"), record("c", 2, "invalid", cause="io", blame="harness"),
    ]  # fmt: skip
    found = summary(tmp_path, ABC, records, max_invalid=0.4)
    [arm] = found["arms"]
    assert arm["rate"] == pytest.approx((1 + 1 / 2) / 2)  # task c has no scored trial
    assert (arm["n_tasks"], arm["n_trials"], arm["invalid"], arm["pending"]) == (2, 3, 2, 1)
    assert arm["share_not_scored"] == pytest.approx(3 / 6)
    assert arm["rate_if_failed"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert arm["rate_if_passed"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert [row["rate"] for row in found["tasks"]] == [1.0, 0.5, None]
    assert found["complete"] is True  # 2 of 6 invalid, 0.4 allowed


@pytest.mark.parametrize(
    ("records", "complete"),
    [
        (SIX, True),
        (SIX[:-1], False),  # one trial has no record
        ([*SIX[:-1], record("c", 2, "invalid", cause="http")], False),  # 1 of 6 is more than 0.05
        ([], False),
    ],
)
def test_a_run_is_complete_when_all_was_run_and_enough_was_scored(
    tmp_path: Path, records: list[Record], complete: bool
) -> None:
    assert summary(tmp_path, ABC, records)["complete"] is complete


def test_a_trial_that_the_user_cut_off_is_owed_however_few_they_are(tmp_path: Path) -> None:
    records = [record("a", n) for n in range(1, 100)] + [record("a", 100, "invalid", cause="cancelled")]
    found = summary(tmp_path, [task("a")], records, trials=100)
    assert (found["missing"], found["complete"]) == (0, False)


def test_of_nothing_scored_no_rate_is_given(tmp_path: Path) -> None:
    found = summary(tmp_path, [task("a")], [record("a", n, "invalid", cause="auth", blame="provider") for n in (1, 2)])
    [arm] = found["arms"]
    nothing = ("rate", "se", "ci_low", "ci_high", "n_eff", "method")
    assert {key: arm[key] for key in nothing} == dict.fromkeys(nothing)
    assert (arm["pass_at"], arm["n_trials"], arm["invalid"]) == ({}, 0, 2)
    assert found["causes"] == [{"verdict": "invalid", "blame": "provider", "cause": "auth", "trials": 2}]


def test_each_arm_has_its_own_numbers_and_labels_that_can_be_told_apart(tmp_path: Path) -> None:
    warm = BASE.model_copy(update={"model_settings": {"temperature": 1.0}})
    records = [record("a", 1, arm=BASE), record("a", 1, "failed", arm=NEW), record("a", 1, "failed", arm=warm)]
    found = summary(tmp_path, [task("a")], records, trials=1, arms=(BASE, NEW, warm))
    assert [(arm["label"], arm["rate"]) for arm in found["arms"]] == [
        (f"base · loop · scripted:s.yaml [{BASE.id}]", 1.0),
        ("new · loop · scripted:s.yaml", 0.0),
        (f"base · loop · scripted:s.yaml [{warm.id}]", 0.0),
    ]
    assert [(row["arm"], row["rate"]) for row in found["tasks"]] == [(BASE.id, 1.0), (NEW.id, 0.0), (warm.id, 0.0)]


def test_classes_split_success_by_what_a_task_expects(tmp_path: Path) -> None:
    tasks = [task("a"), task("b"), task("none", expects="abstain"), task("lost", expects="not_found")]
    records = [
        record("a", 1), record("b", 1, "failed"), record("none", 1, "failed"), record("lost", 1, tool_calls=1)
    ]  # fmt: skip
    found = summary(tmp_path, tasks, records, trials=1)
    assert [(row["class"], row["n_tasks"], row["passed"], row["rate"]) for row in found["classes"]] == [
        ("act", 2, 1, 0.5), ("abstain", 1, 0, 0.0), ("not_found", 1, 1, 1.0)
    ]  # fmt: skip


def test_trials_that_pass_without_a_call_are_counted_where_a_call_was_expected(tmp_path: Path) -> None:
    tasks = [task("a"), task("none", expects="abstain")]
    records = [record("a", 1, tool_calls=0), record("a", 2), record("none", 1, tool_calls=0)]
    found = summary(tmp_path, tasks, records)
    assert [row["passed_without_call"] for row in found["tasks"]] == [1, 0]


@pytest.mark.parametrize(("calls", "weak"), [((1, 2, 2, 2), False), ((1, 1, 2, 2), True), ((2, 2, 2, 2), False)])
def test_a_suite_whose_tasks_need_one_call_is_called_weak(tmp_path: Path, calls: tuple[int, ...], weak: bool) -> None:
    tasks = [task(name) for name in "abcd"]
    records = [record(name, 1, tool_calls=count) for name, count in zip("abcd", calls, strict=True)]
    warnings = summary(tmp_path, tasks, records, trials=1)["warnings"]
    assert any("took at most one call: the suite tests little" in warning for warning in warnings) is weak
    assert "too few tasks for inference: 4; at least 5 are needed, 20 are a start" in warnings


def test_every_interval_stands_beside_its_tasks_trials_and_effective_trials(tmp_path: Path) -> None:
    """A class of one task has an interval for that task alone; groups are the units of the others."""
    tasks = [*(task(f"t{i}", group=f"g{i // 2}") for i in range(8)), task("none", expects="abstain")]
    records = [record(each.id, trial, "passed" if trial < 3 else "failed") for each in tasks for trial in (1, 2, 3)]
    found = summary(tmp_path, tasks, records, trials=3)
    [arm] = found["arms"]
    assert (arm["n_tasks"], arm["n_groups"], arm["n_trials"], arm["failure_bound"]) == (9, 5, 27, None)
    for key in ("pass_at", "pass_hat"):
        assert [0 < n_eff <= 27 for n_eff in arm[f"{key}_n_eff"].values()] == [True] * 3
    act, abstain = found["classes"]
    assert (act["n_tasks"], act["method"]) == (8, "wilson_shrunk")
    assert (abstain["n_tasks"], abstain["n_eff"], abstain["method"]) == (1, 3, "wilson_trials, this task only")


@pytest.mark.parametrize(("groups", "bound"), [(20, 0.139108), (10, 0.258866), (1, None)])
def test_an_arm_that_always_passes_says_what_may_still_fail(tmp_path: Path, groups: int, bound: float | None) -> None:
    """1 - 0.05^(1/n), of independent units."""
    tasks = [task(f"t{i}", group=f"g{i % groups}") for i in range(20)]
    passing = [record(each.id, trial) for each in tasks for trial in (1, 2)]
    [arm] = summary(tmp_path / "all", tasks, passing)["arms"]
    assert arm["failure_bound"] == (None if bound is None else pytest.approx(bound, abs=1e-6))
    [arm] = summary(tmp_path / "one", tasks, [record("t0", 1, "failed"), *passing[1:]])["arms"]
    assert arm["failure_bound"] is None


def test_copied_trials_are_counted_once(tmp_path: Path) -> None:
    records = [
        record("a", 1, reply_hash="x"), record("a", 2, reply_hash="x"), record("b", 1, reply_hash="x"),
        record("b", 2, "failed", reply_hash="y"), record("c", 1, "invalid", reply_hash="z"), record("c", 2),
    ]  # fmt: skip
    [arm] = summary(tmp_path, ABC, records)["arms"]
    assert arm["distinct_trials"] == 4  # (a, x), (b, x), (b, y), c's second


def test_totals_add_up_and_one_unknown_makes_a_sum_unknown(tmp_path: Path) -> None:
    records = [
        record("a", 1, tool_errors=1, protocol_errors=2, duration_ms=500.0, wait_ms=7.0, cached_input_tokens=5),
        record("a", 2, input_tokens=None, duration_ms=None, cached_input_tokens=6),
        record("b", 1, duration_ms=2000.0, cached_input_tokens=7),
    ]
    totals = summary(tmp_path, [task("a"), task("b", trials=1)], records)["totals"]
    assert (totals["trials"], totals["tool_calls"], totals["tool_errors"], totals["protocol_errors"]) == (3, 6, 1, 2)
    assert (totals["input_tokens"], totals["output_tokens"], totals["cached_input_tokens"]) == (None, 30, 18)
    assert (totals["duration_ms"], totals["duration_ms_p50"], totals["wait_ms"]) == (2500.0, 1250.0, 7.0)
    assert totals["cost_usd"] is None


def test_a_task_row_has_medians_and_causes(tmp_path: Path) -> None:
    records = [
        record("a", 1, tool_calls=1, duration_ms=100.0),
        record("a", 2, "failed", tool_calls=4, duration_ms=300.0, cause="no_answer"),
        record("a", 3, "failed", tool_calls=2, duration_ms=900.0, cause="no_answer"),
        record("a", 4, "invalid", tool_calls=9, duration_ms=None, cause="http"),
    ]
    [row] = summary(tmp_path, [task("a")], records, trials=4)["tasks"]
    assert (row["calls_p50"], row["duration_ms_p50"]) == (
        2,
        300.0,
    )  # calls of scored trials, times of all that have one
    assert row["causes"] == {"no_answer": 2, "http": 1}


def called(tool: str, ms: float, status: CallStatus, shown: str, problem: str | None = None) -> list[bytes]:
    """A call and its answer as lines of a transcript."""
    asked = CallAsked(id=f"{tool} {ms}", name=tool, raw_arguments="{}")
    call = ToolCalled(
        at_ms=0, call_id=asked.id, shown_name=tool, server="s", tool=tool, arguments={}, raw_arguments="{}",
        unknown_tool=False, argument_error=problem,
    )  # fmt: skip
    answer = ToolAnswered(
        at_ms=ms, ms=ms, call_id=asked.id, server="s", tool=tool, status=status, result=None, error=None, shown=shown
    )
    return [dump_line(event.model_dump(mode="json")) for event in (call, answer)]


def test_tools_have_calls_errors_times_and_sizes(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", manifest([task("a")], trials=1), [record("a", 1, tool_calls=4)])
    lines = [
        *called("get", 10.0, "ok", "xx"),
        *called("get", 30.0, "ok", "xxxx"),
        *called("get", 20.0, "tool_error", "a long message", problem="'key' is required"),
        *called("get", 50.0, "tool_error", "another"),
        *called("get", 999.0, "timeout", ""),
        *called("put", 7.0, "ok", "x"),
    ]
    (run.folder / "transcripts").mkdir()
    (run.folder / run.records()[0].transcript).write_bytes(b"".join(lines))
    get, put = summarise(run)["tools"]
    assert (get["name"], get["calls"], get["errors"], get["tool_errors"]) == ("get", 5, 3, 2)
    assert (get["argument_errors"], get["rejected_though_valid"]) == (1, 1)
    assert get["ms_p50"] == 25.0  # of 10, 20, 30, 50: a timeout has no time
    assert get["ms_p95"] == pytest.approx(30 + (50 - 30) * 0.85)  # at 0.95 * 3 = 2.85 of the sorted times
    assert get["result_chars_p50"] == 3.0
    assert (put["name"], put["calls"], put["ms_p50"], put["ms_p95"]) == ("put", 1, 7.0, 7.0)
