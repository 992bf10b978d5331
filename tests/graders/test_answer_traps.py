"""Traps: answers that look like the expected value and are another one, and right ones that look odd."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcptrials.graders.answer import KINDS, match_answer

OTHER: dict[str, dict[str, list[str]]] = {
    "number": {
        "12": [
            "12 days before 2024", "no. 12", "12 thousandths", "12 millions", "12 squared", "12 is too many",
            "I could not find it, 12 results were empty", "12 ish", "1 2", "12e0.5", "12:30", "12'", "12\"",
            "\u00bd12", "12\u00bd", "\u246b", "12\u00b2", "1\u06612", "12 % of", "twelve and 12", "$12k", "12 k",
            "12 M", "12 mn", "12 kilo", "12-", "--12", "+-12", "-(-12)", "12 if I counted right",
            "12 not counting drafts", "The total is not 12", "12 (excluding archived)", "12\n13", "12; 13",
            "12 | 13", "12 => 13", "12 <answer>", "\u221212", ">= 12", "12+", "between 10 and 12", "12-15",
            "12 or 13", "at least 12", "not 12", "twelve", "0x0C", "XII", "12%", "1e999999999", "1\u0662",
            "12 dozen", "minus 12", "12 (twelve)", "12?", "12 (approx.)", "12 \u00b1 1", "12th",
        ],
        "1204": ["1,20,4", "12,04", "1204,00"],
        "0.5": ["5e-1e", "50%"],
        "5": ["5 hundred", "5.5", "5/6", "5:1", "inf", "", "5\u200b0"],
        "100": ["100 or more", "up to 100", "100 max", "<100", "100 percent", "10^2"],
        "387420489": ["9**9"],
        "999": ["9**9**9"],
        "1000": ["1,0000", "10000"],
        "1204.5": ["1.204,5"],
        "3": ["I found 3 bugs: 1, 2 and 5", "3.14"],
        "0.333": ["1/3"],
        "15": ["\u202e51\u202c"],
        "3.14": ["3.15"],
    },
    "percent": {
        "12.5%": [
            "12.5% off", "12.5%-13%", "87.5%", "12.5% or 13%", "12.5% increase to 20%", "0.125%", "12.5%%",
            "~12.5%", "13%", "1.25%", "-12.5%",
        ],
    },
    "money": {
        "$1,250.00": [
            "$1,250.00 and $5", "$1,250.00/month", "$1,250.00 per month", "1,250 dollars a month", "$1.250",
            "$1250K", "1250 EUR", "1250 bananas", "($1,250.00)", "US$ 1,250.00 CAD", "-$1,250", "about $1,250",
            "\u00a31250", "1250 cents",
        ],
        "\u20ac5": ["5 $"],
        "\u00a5500": ["500 CNY"],
    },
    "quantity": {
        "5 km": ["5 km/h", "5 km2", "5 km or 6 km", "5 Km/s", "5 kmh", "5 km 300 m", "5", "50 km", "about 5 km"],
        "5 MB": ["5 MBit", "5 mb", "5 MB/s", "5 MiB"],
        "5 m": ["5 M", "5 min"],
        "5 g": ["5 G"],
        "5 h": ["5 H"],
        "5 items": ["5 items each"],
        "1 month": ["30 days"],
        "5 kg": ["5 KG"],
    },
    "id": {
        "BILL-482": [
            "BILL-482-draft", "BILL-482/1", "BILL-482?", "~BILL-482", "-BILL-482", "BILL--482",
            "BILL-482 is not it", "B ILL-482", "BILL-482\nBILL-483", "BILL-4\u20782", "##BILL-482",
            "ticket BILL-482 or so", "BILL_482", "\u0412ILL-482", "BILL-4820", "XBILL-482", "[BILL-482]",
            "BILL-482, BILL-483",
        ],
        "12": ["12.0", "012"],
        "v1.2": ["v1.20"],
        "a.b": ["ab"],
        "00123": ["0123"],
        "3f2a-0001": ["3f2a"],
        "v1.2.3": ["1.2.3"],
    },
    "boolean": {
        "yes": ["yes!?", "Yes, no", "not true", "1", "maybe", "yes or no"],
        "no": ["no idea", "No, wait: yes", "unknown", "not", ""],
        "true": ["untrue"],
    },
    "choice": {
        "B": [
            "B, C", "B or not", "Not B", "B?", "B) not A", "B++", "8", "\u0392", "A) B", "A", "B and C", "AB",
            "not B",
        ],
        "A": ["A good question"],
    },
    "date": {
        "2024-03-05": [
            "2024-05-03", "March 5, 2023", "5 Mar", "2024-03-05 or 2024-03-06", "before March 5, 2024", "2024-03",
            "05-03-2024", "24-03-05", "Mars 5, 2024", "Marches 5, 2024", "2024-03-05T00:00:00+01:00", "2024-03/05",
            "2024-03-055", "03/05/2024", "2024-03-06", "Monday, March 5, 2024", "03/05/24", "2024-W10-2",
        ],
        "2024-02-30": ["2024-02-30"],
    },
    "datetime": {
        "2024-03-05T14:00:00Z": [
            "2024-03-05T14:00:00", "2024-03-05T14:00:00-00:30", "2024-03-05T14:00:00.0000001Z",
            "2024-03-05 2:00 UTC", "2024-03-05 14:00 EST", "about 2024-03-05 14:00Z", "1709647200",
            "2024-03-05T14:00:01Z", "2024-03-05",
        ],
    },
    "set": {
        "[\"a\",\"b\"]": [
            "a, b?", "a, not b", "a/b", "neither a, b", "[\"a\",\"b\",null]", "[\"a\",\"b\"] or [\"c\"]",
            "{\"a\":\"b\"}", "a, b, etc.", "a, b, ...", "a b", "none",
        ],
        "[\"1\",\"10\"]": ["1, 1.0"],
        "[\"a\",\"b\",\"c\"]": ["a, b or c"],
        "[]": [""],
    },
    "list": {
        "[\"a\",\"b\"]": ["1. b\n2. a"],
        "[\"a\",\"a\"]": ["a"],
    },
    "url": {
        "https://example.com/a": [
            "https://example.com/a#x", "https://example.com//a", "https://example.com:444/a",
            "https://example.com@evil.com/a", "https://evil.com/https://example.com/a",
            "[https://example.com/a](https://evil.com)", "https://example.com/a https://b.com",
            "https://\u0435\u0445ample.com/a", "https://example.com/a%2F", "http://example.com/a",
            "https://example.com/a?x=1", "example.com/a", "https://example.com.evil.com/a",
            "https://user@example.com/a",
        ],
    },
    "phone": {
        "+15551234567": ["+15551234567 or +15551234568", "+15551234567 ext 5", "+155512345678", "+1.555.123.4568"],
    },
    "json": {
        "{\"a\":[1,2]}": ["{\"a\":[2,1]}"],
        "{\"a\":1}": ["{\"A\":1}", "{\"a\":true}", "{\"a\":1,\"a\":1}", "{\"a\":\"1\"}"],
        "{\"a\":null}": ["{}"],
        "\"1\"": ["1"],
        "true": ["1"],
    },
    "none": {
        "NOT_FOUND": ["not not found", "found"],
        "none": ["no", "None of them matched, but BILL-1 is close"],
        "not found": ["found"],
    },
    "text": {
        "Website Redesign": [
            "Website Redesign?", "Website Redesigns", "~~Website Redesign~~", "Website, Redesign",
            "Website\u202eRedesign", "It is Website Redesign", "Website Redesign or Mobile App", "WebsiteRedesign",
            "", "The answer is not Website Redesign",
        ],
        "init": ["__init__"],
        "x": ["x\u00b2"],
        "x2": ["x\u00b2"],
        "Paris": ["Paris, Texas", "not Paris", "Answer: not Paris"],
        "a": ["A\u0301"],
        "resume": ["r\u00e9sum\u00e9"],
        "$5": ["5"],
        "5": ["$5"],
        "*": ["**"],
        "don't know": ["do not know"],
        "cafe": ["caf\u00e9"],
        "C": ["C++"],
        "Yes & No": ["Yes and No"],
    },
    "regex": {
        "BILL-\\d+": ["the BILL-482"],
    },
}  # fmt: skip
"""By kind and expected value, answers that must never match."""

SAME: dict[str, dict[str, list[str]]] = {
    "number": {
        "-12": ["\u221212", "minus 12"],
        "12": [
            "$\\boxed{12}$", "\\textbf{12}", "**12** invoices", "There are 12 invoices.", "The total is 12",
            "Answer: 12", "12!", "\u0661\u0662", "12.", "12.0 invoices", "<b>12</b>", "x = 12", "= 12", "12 km",
            "12 USD", "the answer is 12 invoices",
        ],
        "1204": ["1'204", "1\u2019204"],
        "1204567": ["12,04,567"],
        "1000": ["$1,000", "1,000.00", "1000."],
        "7": ["007"],
        "0.5": [".5"],
        "1200000": ["1.2 million", "1,200K"],
        "144": ["12 dozen"],
        "0.333333": ["0.33"],
        "1.5": ["1\u00bd", "1 1/2"],
        "100": ["1e2"],
        "1e3": ["1000"],
        "5": ["\u200b5\u200b"],
        "3.14": ["3.1416"],
        "3.1": ["3.14"],
    },
    "percent": {
        "12.5%": ["12.5 percent", "12.5 %"],
        "12%": ["12 pct"],
    },
    "money": {
        "$1,250.00": ["USD 1,250", "US$1,250.00", "$1.25k", "1,250.00 USD", "$1250.00.", "The total is $1,250.00."],
        "-$5.00": ["-$5"],
        "1250 CAD": ["$1250 CAD", "C$1,250"],
        "$1.2M": ["$1,200,000"],
        "\u00a5500": ["500 yen"],
    },
    "quantity": {
        "5 km": ["5km", "5000 m", "5 Kilometres"],
        "5 MB": ["5 megabytes"],
        "90 min": ["1.5 hours"],
        "3 issues": ["3 issue"],
        "32 \u00b0F": ["0 \u00b0C"],
        "250 ms": ["0.25 s"],
        "20 \u00b0C": ["20 degrees Celsius"],
    },
    "id": {
        "BILL-482": [
            "the issue is BILL-482", "BILL-482.", "\"BILL-482\"", "BILL\u2014482", "BILL\u200b-482",
            "Issue BILL-482",
        ],
        "00123": ["00123"],
    },
    "text": {
        "Website Redesign": [
            "final answer: Website Redesign", "My answer is Website Redesign.", "Website  Redesign",
            "__Website Redesign__", "*Website Redesign*", "# Website Redesign", "'Website Redesign'",
            "Website Redesign!", "The final answer is **Website Redesign**.", "```\nWebsite Redesign\n```",
        ],
        "don't": ["don\u2019t"],
        "a-b": ["a\u2013b"],
        "x": ["The answer is: x"],
        "\ufb01le": ["file"],
        "A": ["\uff21"],
    },
    "none": {
        "not found": ["NOT_FOUND"],
        "NOT_FOUND": ["not found", "`NOT_FOUND`"],
    },
    "boolean": {
        "yes": ["Y", "Yes.", "**Yes**"],
        "no": ["N"],
        "true": ["yes"],
    },
    "choice": {
        "B": ["(B)", "B)", "B.", "Answer: B", "**B**", "The answer is (B)", "B) Paris"],
    },
    "date": {
        "2024-03-05": [
            "5 March 2024", "Mar 5, 2024", "March 5th, 2024", "2024-03-05T00:00:00Z", "20240305", "2024-3-5",
            "Tuesday, March 5, 2024", "on March 5, 2024", "the 5th of March 2024",
        ],
        "2024-03-03": ["03/03/2024"],
    },
    "datetime": {
        "2024-03-05T14:00:00Z": [
            "2024-03-05 14:00 UTC", "March 5, 2024 at 2:00 PM UTC", "2024-03-05T14:00:00.000Z",
            "2024-03-05T14:00:00+00:00",
        ],
    },
    "set": {
        "[\"a\",\"b\",\"c\"]": [
            "a, b and c", "[\"c\",\"b\",\"a\"]", "a; b; c", "A\nB\nC", "`a`, `b`, `c`", "{a, b, c}",
        ],
        "[]": ["[]"],
        "[\"a\"]": ["a"],
        "[\"a, b\",\"c\"]": ["- a, b\n- c"],
        "[\"1\",\"2\"]": ["1, 2.0"],
    },
    "list": {
        "[\"a\",\"b\",\"c\"]": ["a, b, and c", "[\"a\",\"b\",\"c\"]"],
    },
    "url": {
        "https://example.com/a": [
            "<https://example.com/a>", "[link](https://example.com/a)", "https://example.com:443/a",
            "https://example.com/a.",
        ],
        "https://example.com": ["https://example.com/"],
    },
    "phone": {
        "+15551234567": ["15551234567", "+1-555-123-4567", "001 555 123 4567"],
    },
    "json": {
        "{\"a\":1,\"b\":[1,2]}": ["{\"b\":[1,2.0],\"a\":1}"],
        "{\"a\":1}": ["```json\n{\"a\": 1}\n```"],
        "null": ["null"],
    },
    "regex": {
        "BILL-\\d+": ["BILL-482"],
    },
}  # fmt: skip
"""The same of those that must."""

MORE: list[tuple[str, str, str, bool]] = [
    ("text", "Website Redesign", "- Website Redesign", True),
    ("text", "-a", "- a", False),
    ("id", "BILL-482", "* BILL-482", True),
    ("id", "42", "ID: 42", True),
    ("number", "-5", "- 5", True),
    ("number", "5", "- 5", False),
    ("number", "1204.5", "1\n204.5", False),
    ("number", "12", "--12", False),
    ("number", "7.", "7", True),
    ("quantity", "5 km", "5 kms", True),
    ("quantity", "5 m", "5 ms", False),
    ("quantity", "5 km", "$5 km", False),
    ("percent", "12.5%", "7:12.5%", False),
    ("money", "$1,250.00", "$\\boxed{$1,250.00}$", True),
]


@pytest.mark.parametrize(("kind", "expected", "answer", "passed"), MORE)
def test_a_mark_before_or_after_a_value_is_read_with_care(kind: str, expected: str, answer: str, passed: bool) -> None:
    assert match_answer(expected, answer, kind).passed is passed


OPTED: list[tuple[str, str, str, dict[str, Any], bool]] = [
    ("number", "1204.5", "1.204,5", {"decimal_comma": True}, True),
    ("number", "1204.5", "1 204,5", {"decimal_comma": True}, True),
    ("number", "200", "about 200", {"abs_tol": 5}, False),
    ("number", "200", "201", {"rel_tol": 0.01}, True),
    ("number", "0", "no results", {"aliases": ["none", "no results"]}, True),
    ("percent", "12.5%", "12,5 %", {"decimal_comma": True}, True),
    ("percent", "50%", "1/2", {"fraction_ok": True}, True),
    ("percent", "12.5%", "0.125%", {"fraction_ok": True}, False),
    ("money", "\u20ac1,250.00", "\u20ac1.250,00", {"decimal_comma": True}, True),
    ("quantity", "5 km", "5,0 km", {"decimal_comma": True}, True),
    ("quantity", "5 km", "5", {"unit_optional": True}, True),
    ("quantity", "5", "5 km", {"unit": "km"}, True),
    ("quantity", "5", "5 miles", {"unit": "km"}, False),
    ("number", "5", "5", {"unit": "km"}, True),
    ("number", "5", "5 miles", {"unit": "km"}, False),
    ("id", "BILL-482", "bill-482", {"case_sensitive": True}, False),
    ("text", "Website Redesign", "website redesign", {"case_sensitive": True}, False),
    ("none", "not found", "no match", {"aliases": ["no match"]}, True),
    ("date", "2024-03-05", "03/05/2024", {"dayfirst": False}, True),
    ("date", "2024-03-05", "5.3.2024", {"dayfirst": True}, True),
    ("datetime", "2024-03-05T14:00:00Z", "1709647200", {"epoch_ok": True}, True),
    ("datetime", "2024-03-05T14:00:00Z", "1709647200000", {"epoch_ok": True}, True),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_only_looks_like_the_value_does_not_match(kind: str) -> None:
    pairs = [(expected, answer) for expected, answers in OTHER.get(kind, {}).items() for answer in answers]
    assert [pair for pair in pairs if match_answer(*pair, kind).passed] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_only_looks_odd_matches(kind: str) -> None:
    pairs = [(expected, answer) for expected, answers in SAME.get(kind, {}).items() for answer in answers]
    assert [pair for pair in pairs if not match_answer(*pair, kind).passed] == []


@pytest.mark.parametrize(("kind", "expected", "answer", "options", "passed"), OPTED)
def test_an_option_changes_the_verdict_that_it_is_for(
    kind: str, expected: str, answer: str, options: dict[str, Any], passed: bool
) -> None:
    assert match_answer(expected, answer, kind, **options).passed is passed


FORMS = json.loads(Path(__file__).with_name("answer_forms.json").read_text("utf-8"))
"""Expected values with many forms that answers give them, and many that are another value."""


@pytest.mark.parametrize("row", FORMS, ids=lambda row: f"{row['kind']}-{row['expected']}")
def test_a_value_is_known_in_all_its_forms_and_in_no_others(row: dict[str, Any]) -> None:
    def passes(answer: str) -> bool:
        return match_answer(row["expected"], answer, row["kind"], **row["options"]).passed

    assert [answer for answer in row["match"] if not passes(answer)] == []
    assert [answer for answer in row["other"] if passes(answer)] == []


RAW: list[tuple[str, str, str, bool]] = [
    ("json", '{"html": "<b>a</b> &amp; \u201cb\u201d"}', '{"html": "<b>a</b> &amp; \u201cb\u201d"}', True),
    ("json", '{"html": "<b>a</b>"}', '{"html": "a"}', False),
    ("json", '"a\u2013b"', '"a\\u2013b"', True),
    ("regex", "[0-9]\u2013[0-9]", "3\u20135", True),
    ("regex", "[0-9]-[0-9]", "3\u20135", True),
    ("regex", "<b>.*</b>", "<b>x</b>", True),
    ("set", '["\u201ca\u201d", "b &amp; c"]', '["b &amp; c", "\u201ca\u201d"]', True),
    ("list", '["<b>", "<i>"]', '["<b>", "<i>"]', True),
    ("text", "<b>", "`<b>`", True),
    ("text", "<br>", "<br>", True),
    ("text", "<b>", "<i>", False),
    ("text", "<b>", "b", False),
]


@pytest.mark.parametrize(("kind", "expected", "answer", "passed"), RAW)
def test_what_presents_a_sentence_may_be_a_part_of_the_value(
    kind: str, expected: str, answer: str, passed: bool
) -> None:
    assert match_answer(expected, answer, kind).passed is passed
