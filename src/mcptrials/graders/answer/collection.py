"""Kinds `set` and `list`: several texts, in any order or in that one."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal

from mcptrials.graders.answer.number import strict_decimal
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed, shown
from mcptrials.graders.answer.wording import folded, spaced, wordings

_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022\u25e6\u2023\u00b7]|\(?[0-9]{1,4}[.)])[ \t]+")
_EMPTY = frozenset(
    {"", "none", "[]", "{}", "()", "empty", "the empty set", "empty set", "\u2205", "no items", "nothing", "n/a"}
)
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_Items = list["str | Decimal"]


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    if expected.strip().startswith("[") and _json_items(expected) is None:
        return 'it is no list of texts, such as ["a", "b"]'
    return None


def compare_set(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer names the expected items, in any order."""
    wanted = set(next(_readings(expected, options)))
    found = [set(reading) for reading in _all_readings(forms, options)]
    if wanted in found:
        return matched(expected, "as a set")
    best = max(found, key=lambda each: len(each & wanted))
    return _missed(expected, forms[0], sorted(map(str, wanted - best)), sorted(map(str, best - wanted)))


def compare_list(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer names the expected items in their order."""
    wanted = next(_readings(expected, options))
    found = _all_readings(forms, options)
    if wanted in found:
        return matched(expected, "as a list")
    ordered = sorted(map(str, wanted))
    if any(sorted(map(str, each)) == ordered for each in found):
        return missed(expected, forms[0], "in any order: kind set")
    return missed(expected, forms[0])


def _missed(expected: str, answer: str, missing: list[str], extra: list[str]) -> AnswerMatch:
    told = [f"missing {', '.join(missing)}"] if missing else []
    told += [f"too many {', '.join(extra)}"] if extra else []
    found = missed(expected, answer)
    return AnswerMatch(False, found.reason, f"{found.detail}: {shown('; '.join(told))}")


def _all_readings(forms: list[str], options: Options) -> list[_Items]:
    return [reading for form in dict.fromkeys((*forms[:2], forms[-1])) for reading in _readings(form, options)]


def _readings(text: str, options: Options) -> Iterator[_Items]:
    """The lists that a text may be, the likeliest first: JSON, lines, semicolons, commas, a last `and`."""
    text = text.strip()
    if (items := _json_items(text)) is not None:
        yield [_key(item, options) for item in items]
        return
    if folded(text) in _EMPTY:
        yield []
        return
    if _BRACKETS.get(text[:1]) == text[-1:]:
        text = text[1:-1]
    lines = [_BULLET.sub("", line) for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        yield _keys([line.rstrip(",;") for line in lines], options)
    one = " ".join(lines)
    for separator in (";", ","):
        if separator in one:
            yield _keys(one.split(separator), options)
    for word in (" and ", " & "):
        first, found, last = one.rpartition(word)
        if found:
            yield _keys([*first.split(","), last], options)
    yield _keys([one], options)


def _json_items(text: str) -> list[str] | None:
    """The texts of a JSON list; numbers and booleans as they are written."""
    if not text.strip().startswith("["):
        return None
    try:
        value = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(item, str | bool) for item in value):
        return None
    return [str(item).lower() if isinstance(item, bool) else item for item in value]


def _keys(items: list[str], options: Options) -> _Items:
    return [_key(item, options) for item in items if item.strip()]


def _key(item: str, options: Options) -> "str | Decimal":
    """An item as it is compared: numbers by value, texts without case and presentation."""
    text = wordings(item)[-1]
    number = strict_decimal(text)
    if number is not None:
        return number
    return spaced(text) if options.case_sensitive else folded(text)
