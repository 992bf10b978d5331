"""`state_check` judges what a reader found; what could not be read is never a failure."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.graders.state_check import StateCheck
from mcptrials.protocols import GradeInput, Judgement, StateQuery
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome, StateValue

TASK = Task.model_validate({"id": "t", "prompt": "p", "graders": [{"type": "state_check"}]})


def judged(found: Any, **settings_: Any) -> Judgement:
    """Of a state in which the query `q` found this."""
    state = {"q": found if isinstance(found, StateValue) else StateValue(value=found)}
    outcome = Outcome(answer=None, framing="missing", state=state, stop="answer")
    return StateCheck(query="q", **settings_).grade(GradeInput(TASK, outcome, Transcript()))


LABELS = ["billing", "needs-review"]
NESTED = {"items": [{"id": 7, "tags": ["a"]}], "total": 1.5, "open": True, "none": None}
CASES = [
    # expected: equal as JSON, scalars as text or as decimals
    ("done", {"expected": "done"}, True),
    (" done\n", {"expected": "done"}, True),
    ("Done", {"expected": "done"}, False),
    (12, {"expected": 12}, True),
    (12, {"expected": "12.0"}, True),
    (1.5, {"expected": "1.50"}, True),
    ("007", {"expected": "7"}, False),
    (-5, {"expected": 5}, False),
    (True, {"expected": True}, True),
    (True, {"expected": "true"}, True),
    (1, {"expected": True}, False),
    (None, {"expected": None}, True),
    ("x", {"expected": None}, False),
    (None, {"expected": "x"}, False),
    (None, {"expected": ""}, False),
    ("", {"expected": ""}, True),
    (LABELS, {"expected": LABELS}, True),
    (LABELS, {"expected": LABELS[::-1]}, False),
    (LABELS, {"expected": "billing"}, False),
    ("billing", {"expected": ["billing"]}, True),
    ([], {"expected": []}, True),
    (None, {"expected": []}, False),
    ([1, "2"], {"expected": ["1.0", 2]}, True),
    (NESTED, {"expected": {"items": [{"id": "7", "tags": ["a"]}], "total": "1.5", "open": True, "none": None}}, True),
    (NESTED, {"expected": {"items": []}}, False),
    # expected_contains: an element equals; of a text a part; case and outer space do not count
    (LABELS, {"expected_contains": "needs-review"}, True),
    (LABELS, {"expected_contains": " Needs-Review "}, True),
    (LABELS, {"expected_contains": "review"}, False),
    ("needs-review", {"expected_contains": "REVIEW"}, True),
    ([1, 2], {"expected_contains": 2}, True),
    (12, {"expected_contains": 1}, True),
    (None, {"expected_contains": "x"}, False),
    ([], {"expected_contains": "x"}, False),
    ({"a": ["x"]}, {"expected_contains": "x"}, True),
    ([{"a": 1}], {"expected_contains": '{"a":1}'}, True),
    # expected_absent
    (LABELS, {"expected_absent": "wontfix"}, True),
    (LABELS, {"expected_absent": "BILLING"}, False),
    (None, {"expected_absent": "x"}, True),
    # expected_count
    (LABELS, {"expected_count": 2}, True),
    ([], {"expected_count": 0}, True),
    ("one row", {"expected_count": 1}, True),
    (LABELS, {"expected_count": 1}, False),
    # expected_regex
    ("BILL-482", {"expected_regex": r"^BILL-\d+$"}, True),
    ("BILL-482", {"expected_regex": "^bill"}, False),
    (482, {"expected_regex": r"^\d{3}$"}, True),
    (LABELS, {"expected_regex": '"billing"'}, True),
    # several at once must all hold
    (LABELS, {"expected_contains": "billing", "expected_count": 2, "expected_absent": "x"}, True),
    (LABELS, {"expected_contains": "billing", "expected_count": 3}, False),
]


@pytest.mark.parametrize(("found", "settings_", "passed"), CASES)
def test_a_state_is_as_expected_or_not(found: Any, settings_: dict[str, Any], passed: bool) -> None:
    judgement = judged(found, **settings_)
    assert judgement.value is passed
    assert judgement.reason == ("match" if passed else "wrong_state")
    assert judgement.evidence


@pytest.mark.parametrize(
    ("path", "expected", "passed"),
    [("items[0].id", 7, True), ("$.items[-1].tags", ["a"], True), ("none", None, True), ("items[0].id", 8, False)],
)
def test_a_path_leads_to_the_part_that_is_judged(path: str, expected: Any, passed: bool) -> None:
    assert judged(NESTED, path=path, expected=expected).value is passed


@pytest.mark.parametrize("path", ["items[1].id", "nothing", "total.x", "items.id"])
@pytest.mark.parametrize("expectation", [{"expected": None}, {"expected_absent": "x"}, {"expected_count": 0}])
def test_a_path_to_nothing_is_a_wrong_state(path: str, expectation: dict[str, Any]) -> None:
    judgement = judged(NESTED, path=path, **expectation)
    assert (judgement.value, judgement.reason) == (False, "wrong_state")
    assert f"of path {path!r}" in (judgement.evidence or "")


def test_what_could_not_be_read_is_not_graded() -> None:
    judgement = judged(StateValue(error="no database"), expected=None)
    assert (judgement.value, judgement.reason) == (None, "the state could not be read: no database")
    outcome = Outcome(answer=None, framing="missing", stop="answer")
    unread = StateCheck(query="other", expected="x").grade(GradeInput(TASK, outcome, Transcript()))
    assert (unread.value, unread.reason) == (None, "the state was not read")


def test_a_catastrophic_regex_ends_and_is_not_graded() -> None:
    began = time.monotonic()
    judgement = judged("a" * 5000 + "!", expected_regex="(a|aa)+$")
    assert time.monotonic() - began < 20
    assert (judgement.value, judgement.reason) == (None, "'expected_regex' took longer than 1 s")


def test_the_evidence_of_a_huge_state_is_short() -> None:
    judgement = judged(["x" * 100] * 10_000, expected_contains="y")
    assert judgement.value is False
    assert len(judgement.evidence or "") < 500


def test_it_asks_for_its_query_or_for_its_reader_in_place() -> None:
    reader = {"file": "{trial_dir}/a.json", "as": "json"}
    assert StateCheck(query="labels of K", expected="x").needs(TASK) == (StateQuery(text="labels of K"),)
    (query,) = StateCheck(read=reader, expected="x").needs(TASK)
    (again,) = StateCheck(read=dict(reversed(reader.items())), expected="y").needs(TASK)
    (other,) = StateCheck(read={"file": "b"}, expected="x").needs(TASK)
    assert query == again != other
    assert query.read == reader


def test_it_decides_by_default() -> None:
    assert StateCheck.default_gate


@pytest.mark.parametrize("name", ["expected_contains", "expected_absent", "expected_regex", "expected_count"])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_an_expectation_that_expects_nothing_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"empty|valid integer"):
        StateCheck.model_validate({"query": "q", name: value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=50)
@given(found=JSON, part=st.text(min_size=1, max_size=3).filter(str.strip))
def test_any_state_is_judged_and_contains_and_absent_are_opposites(found: Any, part: str) -> None:
    contains = judged(found, expected_contains=part).value
    assert contains is not None
    assert judged(found, expected_absent=part).value is not contains


@settings(deadline=None, max_examples=50)
@given(found=JSON)
def test_a_state_equals_itself(found: Any) -> None:
    assert judged({"wrapped": found}, expected={"wrapped": found}).value is True
