"""`exact_answer` takes the spellings of one value for equal and nothing else, however hostile the answer."""

import time
import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcptrials.graders.answer import MAX_CHARS, Options, expected_problem, infer, match_answer
from mcptrials.graders.exact_answer import ExactAnswer
from mcptrials.protocols import GradeInput, Judgement
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome

TASK = Task.model_validate({"id": "t", "prompt": "p", "graders": [{"type": "exact_answer"}]})


def judged(answer: str | None, framing: Any = "tagged", **settings_: Any) -> Judgement:
    outcome = Outcome(answer=answer, framing=framing, stop="answer")
    return ExactAnswer(**settings_).grade(GradeInput(TASK, outcome, Transcript()))


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("BILL-482", "BILL-482"),
        ("BILL-482", "bill-482"),
        ("BILL-482", "  BILL-482\n"),
        ("BILL-482", "BILL-482."),
        ("BILL-482", '"BILL-482"'),
        ("BILL-482", "'BILL-482.'"),
        ("BILL-482", "\u201cBILL-482\u201d."),
        ("BILL-482", "`BILL-482`"),
        ("BILL-482", "\u00abBILL-482\u00bb"),
        ("BILL-482", "\uff22\uff29\uff2c\uff2c\uff0d\uff14\uff18\uff12"),
        ("Jonas Weber", "jonas\u00a0 weber"),
        ("straße", "STRASSE"),
        ("1.50", "1.5"),
        ("1.5", "1.500"),
        ("1000", "1000.00"),
        ("+5", "5"),
        ("0", "-0"),
        ("-5", "-5.0"),
        ("9007199254740993", "9007199254740993.0"),
        ("12", "\uff11\uff12"),
        ("7", "007"),
        ("100000", "1e5"),
        ("007", "007"),
        ("1e5", "1E5"),
        ("7.6.4", "7.6.4"),
    ],
)
def test_spellings_of_one_value_are_equal(expected: str, answer: str) -> None:
    assert judged(answer, expected=expected).value is True


FORMATTED = ("$1,000", "1,000.00", "**1000**", "1000.", r"\textbf{1000}", " 1000 ", "1 000", "`1000`", "$1000$")
OTHERS = ("1,0000", "10000", "-1000", "100", "1000 or 2000", "1000%", "one thousand and one")


def test_the_form_of_a_number_does_not_count_and_its_value_does() -> None:  # C51
    assert [each for each in FORMATTED if judged(each, expected="1000").value is not True] == []
    assert [each for each in OTHERS if judged(each, expected="1000").value is not False] == []
    assert judged("7", expected="007").value is False
    assert judged("7", expected="007", kind="number").value is True


def test_one_of_several_accepted_values_is_enough_and_between_them_is_wrong() -> None:  # C52
    found = [judged(each, expected=["87.25", "87.73"]).value for each in ("87.25", "87.73 m", "87.5", "87.25 or 87.73")]
    assert found == [True, True, False, False]


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("BILL-482", "BILL-48"),
        ("BILL-482", "BILL-4820"),
        ("BILL-482", "not BILL-482"),
        ("BILL-482", "BILL-482 and BILL-163"),
        ("007", "7"),
        ("-5", "5"),
        ("5", "-5"),
        ("1.5", "1,5"),
        ("1000", "10000"),
        ("1000", "1,0000"),
        ("1e5", "100000"),
        ("12", "12 %"),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.16"),
        ("C++", "C"),
        ("true", "1"),
        ("x", "y"),
        ("5", "nan"),
        ("5", "infinity"),
        ("cafe", "café"),
    ],
)
def test_different_values_are_not_equal(expected: str, answer: str) -> None:
    judgement = judged(answer, expected=expected)
    assert judgement.value is False
    assert judgement.reason in ("wrong", "near_miss", "hedged")
    assert repr(expected) in (judgement.evidence or "")


@pytest.mark.parametrize(
    ("settings_", "answer", "passed"),
    [
        ({"expected": "87.25", "abs_tol": 0.5}, "87.73", True),
        ({"expected": "87.25", "abs_tol": 0.48}, "87.73", True),
        ({"expected": "87.25", "abs_tol": 0.4}, "87.73", False),
        ({"expected": "200", "rel_tol": 0.01}, "202", True),
        ({"expected": "200", "rel_tol": 0.01}, "202.1", False),
        ({"expected": "-200", "rel_tol": 0.01}, "-198", True),
        ({"expected": "0", "rel_tol": 0.01}, "0.001", False),
        ({"expected": "200", "abs_tol": 1, "rel_tol": 0.01}, "202", True),
        ({"expected": ["200", "two hundred"], "abs_tol": 1}, "Two Hundred", True),
        ({"expected": "200", "abs_tol": 1}, "200 items", True),
        ({"expected": "200", "abs_tol": 1}, "200 or so", False),
        ({"expected": "1.50", "kind": "text"}, "1.5", False),
        ({"expected": "1.50", "kind": "id"}, "1.5", False),
        ({"expected": "1.50", "kind": "number"}, "1.5", True),
        ({"expected": "1.50", "kind": "number"}, "about 1.5", False),
        ({"expected": ["a", "b"]}, "B", True),
        ({"expected": ["a", "b"]}, "c", False),
        ({"expected": "a", "aliases": ["alpha"]}, "Alpha.", True),
        ({"expected": 12}, "12.0", True),
        ({"expected": True}, "True", True),
        ({"expected": [12, False]}, "false", True),
    ],
)
def test_options_widen_or_narrow_what_is_equal(settings_: dict[str, Any], answer: str, passed: bool) -> None:
    assert judged(answer, **settings_).value is passed


def test_several_answers_are_no_answer_even_if_the_last_is_right() -> None:
    judgement = judged("BILL-482", "hedged", expected="BILL-482")
    assert (judgement.value, judgement.reason) == (False, "hedged")


@pytest.mark.parametrize("answer", [None, "", " ", "''", '"."', "."])
def test_no_answer_never_matches(answer: str | None) -> None:
    judgement = judged(answer, "tagged" if answer else "missing", expected=["x", "y"])
    assert (judgement.value, judgement.reason) == (False, "no_answer")


@pytest.mark.parametrize(
    ("settings_", "answer", "passed"),
    [
        ({"expected": ["a", "b"], "kind": "set"}, "b, a", True),
        ({"expected": ["a", "b"], "kind": "set"}, "a", False),
        ({"expected": ["a", "b"], "kind": "list"}, "b, a", False),
        ({"expected": ['["a"]', '["b"]'], "kind": "set"}, "b", True),
        ({"expected": "12.5%", "fraction_ok": True}, "0.125", True),
        ({"expected": "2024-03-05", "dayfirst": True}, "05/03/2024", True),
        ({"expected": 5, "unit": "km"}, "5000 m", True),
        ({"expected": "2024-03-05", "aliases": ["last Tuesday"]}, "Last Tuesday", True),
        ({"expected": "5 km", "aliases": ["3.1 miles"], "kind": "quantity"}, "3.10 mi", True),
    ],
)
def test_the_options_of_a_kind_stand_in_the_task_file(settings_: dict[str, Any], answer: str, passed: bool) -> None:
    assert judged(answer, **settings_).value is passed


def test_a_pattern_that_takes_too_long_is_not_graded() -> None:
    assert judged("a" * 200 + "!b", expected="(?:a|aa)+$", kind="regex").value is None


def test_it_decides_and_needs_no_state() -> None:
    assert ExactAnswer.default_gate
    assert ExactAnswer(expected="x").needs(TASK) == ()


def test_an_answer_that_is_cut_equals_nothing() -> None:
    long = "a" * (MAX_CHARS + 1)
    assert match_answer(long, long).passed is False
    assert match_answer("a" * MAX_CHARS, "a" * MAX_CHARS).passed is True


@pytest.mark.parametrize("piece", ["9", "9.", "'", '"', ".", " ", "\ufdfa", "-", "a ", "\u0344", "1\n"])
def test_a_hostile_answer_of_megabytes_is_judged_in_no_time(piece: str) -> None:
    began = time.process_time()
    judgement = judged(piece * (2_000_000 // len(piece)), expected="x", abs_tol=None)
    assert judgement.value is False
    assert len(judgement.evidence or "") < 1000
    assert time.process_time() - began < 3


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)


@settings(deadline=None, max_examples=50)
@given(expected=NUMBERS, actual=NUMBERS)
def test_decimals_are_equal_when_their_values_are(expected: Decimal, actual: Decimal) -> None:
    passed = match_answer(format(expected, "f"), format(actual, "f"), "number").passed
    assert passed is (expected == actual)


@settings(deadline=None, max_examples=50)
@given(expected=NUMBERS, actual=NUMBERS, tolerance=st.decimals(0, 1000, places=2))
def test_a_tolerance_is_exact(expected: Decimal, actual: Decimal, tolerance: Decimal) -> None:
    match = match_answer(format(expected, "f"), format(actual, "f"), "number", abs_tol=float(tolerance))
    assert match.passed is (abs(expected - actual) <= tolerance)


@settings(deadline=None, max_examples=50)
@given(expected=st.text(max_size=30), answer=st.text(max_size=30), kind=st.sampled_from([None, "number", "text", "id"]))
@example(expected="INF", answer="", kind=None)
def test_any_pair_of_texts_is_judged_and_a_text_equals_itself(expected: str, answer: str, kind: Any) -> None:
    match = match_answer(expected, answer, kind)
    assert match.passed is (match.reason == "match")
    if not expected_problem(expected, kind or infer(expected, Options()), Options()):
        assert match_answer(expected, expected, kind).passed


@pytest.mark.parametrize("answer", ["4²", "4₂", "④2", "④②", "⑷2", "4⒉", "4½", "⒋2", "㊷", "4²."])
def test_raised_circled_and_broken_digits_make_no_other_number(answer: str) -> None:
    assert not match_answer("42", answer).passed
    assert match_answer("4.5", answer).passed is (answer == "4½")
    assert match_answer(answer, answer).passed


@pytest.mark.parametrize("answer", ["\uff14\uff12", "\U0001d7d2\U0001d7d0", "\uff14\uff12\uff0e\uff10"])
def test_full_width_and_typeset_digits_are_digits(answer: str) -> None:
    assert match_answer("42", answer).passed


@settings(max_examples=300)
@given(st.sampled_from([chr(code) for code in range(0x80, 0x32000) if unicodedata.decomposition(chr(code))]))
def test_no_character_but_a_digit_becomes_digits(char: str) -> None:
    plain = unicodedata.normalize("NFKC", char)
    if any(map(str.isdigit, plain)) and unicodedata.category(char) != "Nd":
        assert not match_answer(f"7{plain}", f"7{char}").passed
    else:
        assert match_answer(f"7{plain}", f"7{char}").passed
