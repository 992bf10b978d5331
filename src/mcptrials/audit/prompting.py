"""Prompting: what a grader of answers needs to be told, and a prompt does not say."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcptrials.audit.line import Doubt
from mcptrials.audit.trail import line_with, parts
from mcptrials.graders.answer import Kind
from mcptrials.graders.answer.date import read_days
from mcptrials.graders.answer.unit import find_unit
from mcptrials.graders.exact_answer import ExactAnswer

FORM = re.compile(
    r"(?i)\b(?:format(?:s|ted)?|form|exactly|verbatim|word for word|spell(?:ed|ing)?|written|e\.g\.|for example|such as"
    r"|iso(?:[ -]?8601)?|y{4}|digits?|decimals?|separators?|capitals?|(?:upper|lower)[ -]?case|case|letters?|as it is"
    r"|pattern|markdown|json)\b"
)
"""Words by which a prompt asks for a form."""
_PRECISE = re.compile(
    r"(?i)\b(?:decimals?|round(?:ed|ing)?|digits?|places?|nearest|precis(?:e|ion)|toleran\w+|within|exact(?:ly)?|whole"
    r"|about|approximate(?:ly)?|roughly|estimate|significant|give or take|off by)\b|\u00b1|\+/-"
)
_ORDER = re.compile(
    r"(?i)\b(?:in (?:\w+ ){0,3}order|ordered by|sort(?:ed)?|rank(?:ed|ing)?|first|last|oldest|newest|earliest|latest"
    r"|highest|lowest|largest|smallest|alphabetical(?:ly)?|chronological(?:ly)?|ascending|descending|sequence"
    r"|from .{1,60} to)\b"
)
_ZONE = re.compile(
    r"(?i)\b(?:utc|gmt|time ?zone|zone|offset|[cepm][sed]?t|local time|iso(?:[ -]?8601)?|rfc ?3339)\b|:00Z?\b"
)
_JSON = re.compile(r"(?i)\b(?:json|object|array|keys?|fields?)\b")
_WORDING = re.compile(r"(?i)\b(?:exactly|verbatim|word for word|quote|copy|title|sentence|text|reply)\b")
_DAY_FIRST = re.compile(r"(?i)\b(?:dd?[-/.]mm?|mm?[-/.]dd?|month first|day first)\b|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
_MONTHS = 12
_WORDY = 9
_ROUNDED = 2
_FORM_FIX = "describe the form in the prompt, or use a kind that takes every form"
_SAID = "say so in the prompt: {}"


class _Need(NamedTuple):
    """What a grader needs, unless the prompt has words for it."""

    needed: bool
    named: bool
    what: str
    fix: str


def unnamed(prompt: str, grader: ExactAnswer, answers: Sequence[str] | None) -> Iterator[Doubt]:
    """What the prompt leaves open though the grader does not; `answers` are what the reference was answered."""
    for value, kind in zip(grader.values, grader.kinds, strict=True):
        needs = [*_of_numbers(prompt, grader, value, kind, answers), *_of_forms(prompt, grader, value, kind)]
        yield from (Doubt(need.what, need.fix) for need in needs if need.needed and not need.named)


def _of_numbers(
    prompt: str, grader: ExactAnswer, value: str, kind: Kind, answers: Sequence[str] | None
) -> Iterator[_Need]:
    measured = kind in ("number", "quantity", "percent", "money")
    decimals = len(re.sub(r"[^\d.]", "", value).partition(".")[2])
    tolerant = _is_tolerant(grader, value, decimals)
    copied = answers is not None and line_with(value.strip(), answers) is not None
    yield _Need(
        bool(grader.unit) and measured,
        names_unit(prompt, grader.unit or ""),
        f"its prompt names no unit, and its grader takes {grader.unit!r}",
        _SAID.format(f"'in {grader.unit}'"),
    )
    yield _Need(
        tolerant and measured,
        bool(_PRECISE.search(prompt)),
        "its prompt names no precision, and its grader has a tolerance",
        _SAID.format("'rounded to two decimals', 'within 5%'"),
    )
    yield _Need(
        kind == "number" and decimals > _ROUNDED and not tolerant and not copied,
        bool(_PRECISE.search(prompt)),
        f"its prompt names no precision, and its grader takes no rounding to fewer than {_ROUNDED} decimals",
        "say how many decimals, or give the grader abs_tol",
    )
    yield _Need(
        grader.decimal_comma and measured,
        bool(re.search(r"(?i)\bcomma\b|\d,\d", prompt)),
        "its prompt does not ask for a decimal comma, which its grader expects",
        _SAID.format("'with a comma before the decimals'"),
    )


def _is_tolerant(grader: ExactAnswer, value: str, decimals: int) -> bool:
    """Whether another value of as many decimals is taken; less is only for how computers reckon."""
    figures = re.sub(r"[^\d.]", "", value)
    size = float(figures) if re.fullmatch(r"\d{1,300}(\.\d*)?", figures) else 0.0
    widest = max(grader.abs_tol or 0.0, (grader.rel_tol or 0.0) * size)
    return widest > 0 and widest >= 0.5 * 10.0**-decimals


def _of_forms(prompt: str, grader: ExactAnswer, value: str, kind: Kind) -> Iterator[_Need]:
    form = bool(FORM.search(prompt))
    taken = [value, *grader.aliases]
    yield _Need(kind == "regex", form, "its prompt names no form, and its grader takes what fits a pattern", _FORM_FIX)
    yield _Need(
        kind == "date" and grader.dayfirst is None and _has_two_readings(value),
        form or bool(_DAY_FIRST.search(prompt)),
        "its prompt names no form of the date, and of 05/03/2024 nobody can tell the month",
        _SAID.format("'as YYYY-MM-DD'"),
    )
    yield _Need(
        kind == "datetime" and not grader.assume_utc,
        bool(_ZONE.search(prompt)),
        "its prompt names no time zone, and its grader takes no time without one",
        _SAID.format("'in UTC, as 2024-03-05T14:30:00Z'"),
    )
    yield _Need(
        kind == "list",
        bool(_ORDER.search(prompt)),
        "its prompt names no order, and its grader takes the items in one order only",
        "name the order, or use kind: set",
    )
    yield _Need(
        kind == "json", bool(_JSON.search(prompt)), "its prompt does not ask for JSON", "ask for it, with its keys"
    )
    yield _Need(
        kind == "choice",
        line_with(value, [prompt]) is not None,
        "its prompt does not list the options, one of which its grader expects",
        "list the options with their labels",
    )
    yield _Need(
        kind == "none",
        any(line_with(_spaced(each), [_spaced(prompt)]) for each in taken),
        "its prompt does not agree on the word for 'there is none', which its grader expects",
        "say which word to reply with then, or add aliases",
    )
    yield _Need(
        grader.case_sensitive,
        form,
        "its prompt does not say that upper and lower case count",
        _SAID.format("'exactly as it is written'"),
    )
    yield from _of_texts(prompt, value, kind, taken)


def _of_texts(prompt: str, value: str, kind: Kind, taken: Sequence[str]) -> Iterator[_Need]:
    items = parts(value) if kind == "text" else []
    others = [parts(alias) for alias in taken[1:]]
    yield _Need(
        len(items) > 1 and not any(each != items and sorted(each) == sorted(items) for each in others),
        bool(_ORDER.search(prompt)),
        "its answer is a list that is compared as one text, in one order and with one separator",
        "use kind: set or list with its items, or add the other orders as aliases",
    )
    yield _Need(
        len(items) == 1 and len(value.split()) >= _WORDY,
        bool(_WORDING.search(prompt)),
        f"its answer is a text of {len(value.split())} words, which nobody finds word for word by chance",
        "ask for a key, a name or a number; or say where the text is to be copied from",
    )


def _spaced(text: str) -> str:
    """As kind none compares it: `_` and `-` are spaces."""
    return re.sub("[_-]", " ", text)


def names_unit(prompt: str, unit: str) -> bool:
    """Whether a prompt has a unit, or another one of its dimension, or asks for one."""
    if line_with(unit, [prompt]) or re.search(r"(?i)\bunits?\b", prompt):
        return True
    known = find_unit(unit)
    words = re.findall(r"[^\W\d_]+", prompt)
    found = (find_unit(word) for word in words if len(word) > 1)
    return known is not None and any(each is not None and each.dimension == known.dimension for each in found)


def _has_two_readings(value: str) -> bool:
    """Whether the day could be the month, were it written in figures."""
    day = read_days(value.strip(), None).first
    return day is not None and day.day <= _MONTHS and day.day != day.month
