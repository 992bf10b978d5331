"""`match_answer` takes the forms of one value for equal, by kind, and says why not otherwise."""

import json
import re
import time
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import scipy.constants
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

import mcptrials
from mcptrials.errors import UsageError
from mcptrials.graders.answer import KINDS, MAX_CHARS, Options, expected_problem, infer, match_answer
from mcptrials.graders.answer.options import FITS, NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "answers.md").read_text("utf-8")
PAIRS = json.loads((Path(__file__).parent / "answers.json").read_text("utf-8"))
EXAMPLE = re.compile(r"^\| ([a-z]+) \| `(.*?)` \| `(.*?)` \| (?:`(.*?)`)? ?\| (\w+) \|$", re.MULTILINE)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['kind']}:{pair['expected']}:{pair['answer']}")
def test_each_pair_is_judged_as_people_judged_it(pair: dict[str, Any]) -> None:
    match = mcptrials.match_answer(pair["expected"], pair["answer"], pair["kind"], **pair.get("opts", {}))
    assert match.passed is pair["match"], f"{match}: {pair['why']}"


def test_the_examples_of_the_page_are_true() -> None:
    examples = EXAMPLE.findall(PAGE)
    assert {kind for kind, *_ in examples} == set(KINDS)
    assert len(examples) == PAGE.partition("## Examples")[2].count("\n| ") - 1
    told = []
    for kind, expected, answer, written, verdict in examples:
        options = YAML(typ="safe", pure=True).load(f"{{{written}}}")
        reason = match_answer(expected, answer.replace("\\n", "\n"), kind, **options).reason
        told += [(kind, expected, answer, verdict, reason)] if reason != verdict else []
    assert told == []


def test_the_page_names_the_options_of_every_kind() -> None:
    rows = re.findall(
        r"^\| ([a-z, ]+) \| .* \| ([a-z_, ]*) ?\|$", PAGE.partition("| kind |")[2].partition("## Options")[0], re.M
    )
    for kinds, named in rows:
        for kind in kinds.split(", "):
            assert set(named.strip().split(", ")) - {""} == {name for name in NAMES if kind in FITS[name]}
    assert {kind for kinds, _ in rows for kind in kinds.split(", ")} >= set(KINDS)


RIGHT = {
    "number": "1204.5",
    "text": "Website Redesign",
    "id": "BILL-482",
    "date": "2024-03-05",
    "datetime": "2024-03-05T14:00:00Z",
    "set": '["a", "b", "c"]',
    "list": '["a", "b", "c"]',
    "boolean": "yes",
    "percent": "12.5%",
    "money": "$1,250.00",
    "quantity": "5 km",
    "choice": "B",
    "url": "https://example.com/a",
    "phone": "+15551234567",
    "json": '{"a": 1}',
    "none": "NOT_FOUND",
    "regex": "[A-Z]+-482",
}


@pytest.mark.parametrize(("kind", "expected"), RIGHT.items())
def test_the_kind_is_what_the_expected_value_seems_to_be(kind: str, expected: str) -> None:
    seems = {"set": "list", "regex": "text"}.get(kind, kind)
    assert infer(expected, Options()) == seems


@pytest.mark.parametrize(
    ("expected", "kind"),
    [("007", "id"), ("1e5", "id"), ("7.6.4", "id"), ("1,204", "number"), ("10 Downing Street", "text"), ("x", "text"),
     ("20240305", "number"), ("not found", "none"),
     ("[1, 2", "text"), ("[[1]]", "json"), ("", "text"), ("NaN", "number"),
     ("12 invoices", "text"), ("€5", "money"), ("+5", "number"), ("A1", "id"), ("2024-02-30", "id")],
)  # fmt: skip
def test_what_is_no_number_is_not_guessed_to_be_one(expected: str, kind: str) -> None:
    assert infer(expected, Options()) == kind


INNER = st.sampled_from(
    ["{}", " {} ", "**{}**", "`{}`", '"{}"', "\u201c{}\u201d", "\\text{{{}}}", "\u200b{}\u2060", "{}."]
)  # fmt: skip
OUTER = st.sampled_from(
    ["{}\n", "Answer: {}", "The answer is {}", "my final answer is: {}", "\\boxed{{{}}}", "$\\boxed{{{}}}$",
     "<b>{}</b>",
     "> {}",
     "```\n{}\n```", "*{}*", "\u2068{}\u2069", "'{}'"]
)  # fmt: skip
SPARED = {"json", "set", "list"}


@settings(deadline=None, max_examples=100)
@given(st.sampled_from([kind for kind in RIGHT if kind not in SPARED]), INNER, OUTER, st.booleans())
def test_presentation_never_changes_a_verdict(kind: str, inner: str, outer: str, right: bool) -> None:
    value = "ABC-482" if kind == "regex" else RIGHT[kind]
    other = {"boolean": "no", "choice": "C"}.get(kind, value.replace("2", "3").replace("5", "6").replace("e", "i"))
    other = other if other != value else f"{value}9"
    written = value if right else other
    match = match_answer(RIGHT[kind], outer.format(inner.format(written)), kind)
    assert match.passed is right, (written, match)


@settings(deadline=None, max_examples=100)
@given(
    st.decimals(-(10**6), 10**6, places=3),
    st.decimals(-(10**6), 10**6, places=3),
    st.lists(st.floats(0, 1e7), min_size=2, max_size=6),
)
def test_a_wider_tolerance_never_loses_a_match(expected: Any, actual: Any, tolerances: list[float]) -> None:
    for name in ("abs_tol", "rel_tol"):
        options: list[dict[str, Any]] = [{name: each} for each in sorted(tolerances)]
        verdicts = [match_answer(f"{expected:f}", f"{actual:f}", "number", **each).passed for each in options]
        assert verdicts == sorted(verdicts)


@settings(deadline=None, max_examples=100)
@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_a_whole_number_matches_itself_alone_in_every_form(expected: int, other: int) -> None:
    for form in ("{}", "{:,}", "{:_}", "{}.0", "{} invoices", "There are {:,}", "{}e0"):
        assert match_answer(str(expected), form.format(expected), "number").passed
        assert match_answer(str(expected), form.format(other), "number").passed is (expected == other)


@settings(deadline=None, max_examples=60)
@given(st.dates(date(1000, 1, 1)), st.dates(date(1000, 1, 1)))  # strftime does not pad earlier years
def test_a_date_matches_itself_alone_in_every_form(expected: Any, other: Any) -> None:
    for form in ("{:%Y}-{:%m}-{:%d}", "{:%Y}/{:%m}/{:%d}", "{:%d} {:%B} {:%Y}", "{:%A}, {:%B} {:%d}, {:%Y}"):
        for day in (expected, other):
            assert match_answer(expected.isoformat(), form.format(*[day] * 4), "date").passed is (day == expected)


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from([None, *KINDS]))
def test_no_text_is_an_error(expected: str, answer: str, kind: str | None) -> None:
    match = match_answer(expected, answer, kind)
    assert match.passed is (match.reason == "match")


PIECES = [
    "9", "9.", "9,", "1,22", "'", '"', ".", "-", " a", "a,", "a and ", "\n", "- a\n", "\ufdfa", "\u0344", "\u202e",
    "\u00bd",
    "*",
    "**a** ", "`", "_", "$", "\\text{", "{", "[", "<b>", "&amp;", "the answer is ", "is ", "BILL-482 ", "12.5 or ",
    "1/",
    "e9",
    "```",
    "\ud800", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_no_answer_takes_long_or_matches_by_its_size(kind: str | None) -> None:
    size = MAX_CHARS if kind == "number" else MAX_CHARS // 5
    for piece in PIECES:
        answer = (RIGHT[kind or "number"] + piece * size)[:size]
        began = time.process_time()
        match = match_answer(RIGHT[kind or "number"], answer, kind)
        assert time.process_time() - began < 1
        assert not match.passed or not piece.strip() or piece in ("<b>", "_", "-"), (piece, match)


@pytest.mark.parametrize(
    "answer",
    ["1e999999999", "-1e-999999999", "9**9**9", "NaN", "inf", "-Infinity", "1e400", "\u202e5\u202c", "1\u0662", "1/0"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bombs_and_what_is_no_number_match_nothing(kind: str, answer: str) -> None:
    assert not match_answer(RIGHT[kind], answer, kind).passed
    assert not match_answer("5", answer, kind if kind != "regex" else "number").passed


def test_deep_json_a_key_twice_and_nan_are_no_json() -> None:
    for answer in (
        "[" * 9000,
        '{"a":' * 1500 + "1" + "}" * 1500,
        '{"a": 1, "a": 1}',
        '{"a": NaN}',
        '{"a": 1e999999999999}',
    ):
        assert not match_answer('{"a": 1}', answer, "json").passed
    assert match_answer('{"a": 1}', '```json\n{"a": 1.0}\n```', "json").passed
    assert not match_answer("NaN", "NaN", "json").passed


def test_a_pattern_that_is_too_long_for_its_time_limit_is_refused() -> None:
    assert "too long" in str(expected_problem("9" * 5000, "regex", Options()))
    assert not match_answer("9" * 5000, "9" * 5000 + "0", "regex").passed


def test_a_pattern_that_explodes_is_given_up() -> None:
    began = time.monotonic()
    match = match_answer("(?:a|aa)+$", "a" * 200 + "!b", "regex")
    assert (match.passed, "too long" in match.detail) == (False, True)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("unit", "other", "factor"),
    [
        ("m", "miles", scipy.constants.mile),
        ("m", "ft", scipy.constants.foot),
        ("m", "inches", scipy.constants.inch),
        ("kg", "lbs", scipy.constants.pound),
        ("kg", "oz", scipy.constants.ounce),
        ("s", "weeks", scipy.constants.week),
        ("L", "gallons", scipy.constants.gallon / scipy.constants.liter),
        ("m2", "acres", scipy.constants.acre),
        ("m/s", "mph", scipy.constants.mph),
        ("m/s", "knots", scipy.constants.knot),
        ("bytes", "MiB", scipy.constants.mebi),
        ("Pa", "psi", scipy.constants.psi),
        ("J", "cal", scipy.constants.calorie),
        ("J", "kWh", scipy.constants.kilo * scipy.constants.hour),
    ],
)
def test_units_are_converted_as_an_independent_table_says(unit: str, other: str, factor: float) -> None:
    assert match_answer(f"{factor!r} {unit}", f"1 {other}", "quantity", rel_tol=1e-9).passed
    assert not match_answer(f"{factor * 1.0001!r} {unit}", f"1 {other}", "quantity", rel_tol=1e-6).passed


@pytest.mark.parametrize("celsius", [-40, 0, 37, 100])
def test_temperatures_are_converted_with_their_offsets(celsius: int) -> None:
    fahrenheit = scipy.constants.convert_temperature(celsius, "Celsius", "Fahrenheit")
    assert match_answer(f"{celsius} °C", f"{Fraction(fahrenheit).limit_denominator(10)} °F", "quantity").passed
    assert match_answer(f"{celsius} °C", f"{celsius + 273.15:.2f} K", "quantity").passed
    assert not match_answer(f"{celsius} °C", f"{celsius + 273} K", "quantity").passed


@pytest.mark.parametrize(
    ("kind", "options", "error"),
    [
        ("number", {"abstol": 1}, "there is no option 'abstol'; did you mean 'abs_tol'?"),
        ("nubmer", {}, "there is no kind 'nubmer'; did you mean 'number'?"),
        ("number", {"abs_tol": -1}, "'abs_tol' should be a number that is not negative, not -1"),
        ("number", {"rel_tol": float("nan")}, "'rel_tol' should be a number that is not negative, not nan"),
        ("date", {"dayfirst": "yes"}, "'dayfirst' should be true or false, not 'yes'"),
        ("text", {"abs_tol": 1}, "'abs_tol' is for kind money, number, percent, quantity, and this is text, which has "
         "case_sensitive, aliases"),
        (None, {"fraction_ok": True}, "'fraction_ok' is for kind percent, and this is number, which has abs_tol, "
         "decimal_comma, rel_tol, unit, unit_optional, aliases"),
    ],
)  # fmt: skip
def test_an_option_that_cannot_work_is_refused(kind: str | None, options: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as caught:
        match_answer("5", "5", kind, **options)
    assert str(caught.value) == error
