"""The verdict of a trial that ran to its end, row by row of the table: the first rule that matches decides."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptrials.trial import Arm, Decision, Grade, Outcome, Trial, decide, partial_credit

PASSED = Decision("passed", "none", None)


def ended(stop: str = "answer", answer: str | None = "x") -> Outcome:
    return Outcome(answer=answer, framing="tagged" if answer else "missing", stop=stop)


def grade(value: bool | float | None, type_: str = "exact_answer", *, gate: bool = True, reason: str = "") -> Grade:
    return Grade(type=type_, name=type_, value=value, gate=gate, reason=reason, hash="h")


GOOD, BAD, NONE = grade(True), grade(False), grade(None)


@pytest.mark.parametrize("stop", ["crash", "contract_violation", "context_overflow"])
@pytest.mark.parametrize("grades", [[], [GOOD], [BAD], [NONE]])
def test_what_the_server_ended_is_a_failure_of_the_server(stop: str, grades: list[Grade]) -> None:
    assert decide(ended(stop), grades, "all", last_call_timed_out=True) == Decision("failed", "server", stop)


@pytest.mark.parametrize("stop", ["limit:turns", "limit:tool_calls", "limit:tokens", "refused", "malformed_call"])
@pytest.mark.parametrize("grades", [[], [GOOD], [BAD], [NONE]])
def test_what_the_agent_ended_is_a_failure_of_the_agent(stop: str, grades: list[Grade]) -> None:
    assert decide(ended(stop), grades, "all", last_call_timed_out=True) == Decision("failed", "agent", stop)


@pytest.mark.parametrize(
    ("share", "decision"),
    [
        (0.0, Decision("invalid", "provider", "limit:time")),
        (0.499, Decision("invalid", "provider", "limit:time")),
        (0.5, Decision("failed", "server", "limit:time")),
        (1.2, Decision("failed", "server", "limit:time")),
    ],
)
def test_when_time_runs_out_the_slower_side_is_to_blame(share: float, decision: Decision) -> None:
    assert decide(ended("limit:time"), [GOOD], "all", tool_time_share=share) == decision


@pytest.mark.parametrize(
    ("tools", "model", "blame"), [(0.0, 0.1, "harness"), (0.4, 0.1, "harness"), (0.4, 0.3, "provider")]
)
def test_a_time_limit_is_not_the_providers_where_it_did_not_take_the_time(
    tools: float, model: float, blame: str
) -> None:
    decision = decide(ended("limit:time"), [GOOD], "all", tool_time_share=tools, model_time_share=model)
    assert (decision.verdict, decision.blame) == ("invalid", blame)


@pytest.mark.parametrize("grades", [[NONE], [GOOD, NONE], [BAD, NONE], [NONE, grade(None, "human")]])
def test_a_deciding_grade_that_is_missing_makes_the_trial_invalid(grades: list[Grade]) -> None:
    assert decide(ended(), grades, "all") == Decision("invalid", "grader", "grader_error")


@pytest.mark.parametrize("others", [[], [GOOD], [BAD]])
def test_a_trial_that_waits_only_for_a_person_is_pending(others: list[Grade]) -> None:
    assert decide(ended(), [*others, grade(None, "human")], "all") == Decision("pending", "none", "human")


def test_a_trial_passes_when_all_deciding_grades_pass() -> None:
    assert decide(ended(), [GOOD, grade(True, "state_check")], "all") == PASSED
    assert decide(ended(), [GOOD, grade(1.0, "judge")], "all") == PASSED
    assert decide(ended(), [GOOD, grade(0.99, "judge")], "all").verdict == "failed"


def test_grades_that_only_report_decide_nothing() -> None:
    reported = [grade(False, "max_calls", gate=False), grade(None, "judge", gate=False)]
    assert decide(ended(), [GOOD, *reported], "all") == PASSED
    assert decide(ended(), [BAD, grade(True, gate=False)], "any").verdict == "failed"


@pytest.mark.parametrize(
    ("grades", "answer", "cause"),
    [
        ([BAD], "x", "wrong_answer"),
        ([BAD], None, "no_answer"),
        ([grade(False, reason="no_answer")], "''", "no_answer"),
        ([grade(False, "state_check")], "x", "wrong_state"),
        ([grade(False, "state_check")], None, "wrong_state"),
        ([grade(False, "state_equals_reference")], "x", "wrong_state"),
        ([grade(False, "only_changes")], "x", "wrong_state"),
        ([grade(False, "no_tool_call")], "x", "called_when_it_should_not"),
        ([grade(False, "forbidden_tools")], "x", "called_forbidden_tool"),
        ([grade(False, "required_tools")], None, "tool_not_called"),
        ([grade(False, "call_order")], "x", "wrong_call_order"),
        ([grade(False, "max_calls")], "x", "too_many_calls"),
        ([grade(False, "./mine.py:Mine")], "x", "wrong_answer"),
        ([GOOD, grade(False, "state_check"), BAD], "x", "wrong_state"),
        ([BAD, grade(False, "state_check")], "x", "wrong_answer"),
    ],
)
def test_the_first_deciding_grade_that_failed_is_the_cause(grades: list[Grade], answer: str | None, cause: str) -> None:
    assert decide(ended(answer=answer), grades, "all") == Decision("failed", "agent", cause)


def test_a_wrong_end_after_a_call_that_timed_out_is_the_servers() -> None:
    assert decide(ended(), [BAD], "all", last_call_timed_out=True) == Decision("failed", "server", "call_timeout")
    assert decide(ended(), [GOOD], "all", last_call_timed_out=True) == PASSED


def test_with_any_one_passing_grade_is_enough_even_beside_one_that_is_missing() -> None:
    assert decide(ended(), [BAD, GOOD], "any") == PASSED
    assert decide(ended(), [NONE, GOOD], "any") == PASSED
    assert decide(ended(), [BAD, NONE], "any") == Decision("invalid", "grader", "grader_error")
    assert decide(ended(), [BAD, BAD], "any") == Decision("failed", "agent", "wrong_answer")


@pytest.mark.parametrize("stop", ["length", "answer"])
def test_an_answer_that_was_cut_is_graded_like_any_other(stop: str) -> None:
    assert decide(ended(stop), [GOOD], "all") == PASSED
    assert decide(ended(stop, None), [BAD], "all") == Decision("failed", "agent", "no_answer")


@pytest.mark.parametrize(
    ("verdict", "passed"), [("passed", True), ("failed", False), ("invalid", None), ("pending", None)]
)
def test_only_a_scored_trial_has_passed_or_not(verdict: Any, passed: bool | None) -> None:
    assert Decision(verdict, "none", None).passed is passed


@pytest.mark.parametrize(
    ("value", "passed"),
    [(True, True), (False, False), (None, None), (1.0, True), (1.5, True), (0.0, False), (0.5, False)],
)
def test_a_grade_passes_when_it_is_true_or_at_least_one(value: bool | float | None, passed: bool | None) -> None:
    assert grade(value).passed is passed


@given(
    stop=st.sampled_from(["answer", "length", "crash", "refused", "limit:time", "limit:turns"]),
    values=st.lists(st.sampled_from([True, False, None]), max_size=4),
    combine=st.sampled_from(["all", "any"]),
    timed_out=st.booleans(),
    share=st.floats(0, 2),
)
def test_every_trial_has_a_verdict_and_blame_never_falls_on_nobody_who_failed(
    stop: str, values: list[bool | None], combine: Any, timed_out: bool, share: float
) -> None:
    grades = [grade(value) for value in values]
    decision = decide(ended(stop), grades, combine, last_call_timed_out=timed_out, tool_time_share=share)
    assert (decision.verdict == "failed") == (decision.blame in ("agent", "server"))
    assert (decision.cause is None) == (decision.verdict == "passed")


def test_an_arm_is_known_by_what_decides_its_behaviour() -> None:
    arm = Arm(variant="base", host="loop", model="openai:m", model_settings={"temperature": 0.5, "top_p": 1})
    same = Arm(variant="base", host="loop", model="openai:m", model_settings={"top_p": 1, "temperature": 0.5})
    other = Arm(variant="base", host="loop", model="openai:m", model_settings={"temperature": 0.5})
    assert (len(arm.id), arm.label) == (8, "base · loop · openai:m")
    assert (arm.id == same.id, arm.id == other.id) == (True, False)


def test_a_trials_name_is_unique_in_a_run_and_tells_its_attempt() -> None:
    trial = Trial(task_id="issues-017", arm="0a1b2c3d", number=3, seed=7, block=3, attempt=2)
    assert trial.name == "issues-017-3-0a1b2c3d-2"
    assert trial.key.model_dump() == {"task_id": "issues-017", "arm": "0a1b2c3d", "number": 3, "attempt": 2, "seed": 7}


def test_partial_credit_is_weighted_and_a_value_beyond_the_whole_earns_no_more() -> None:
    half, more, less = grade(0.5), grade(3.0), grade(-1.0)
    assert partial_credit([half.model_copy(update={"weight": 3}), grade(True)]) == (3 * 0.5 + 1) / 4
    assert partial_credit([half, more]) == 0.75
    assert partial_credit([half, less]) == 0.25
    assert partial_credit([half, grade(0.0, gate=False)]) == 0.5
    assert partial_credit([half, grade(None)]) is None
    assert partial_credit([grade(True, gate=False)]) is None
