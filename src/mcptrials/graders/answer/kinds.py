"""The kinds of answers: how each is checked and compared, and which one an expected value seems to be."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mcptrials.graders.answer import (
    absence,
    boolean,
    choice,
    collection,
    date,
    expression,
    identifier,
    instant,
    json_value,
    money,
    number,
    percent,
    phone,
    quantity,
    text,
    url,
)  # fmt: skip
from mcptrials.graders.answer.options import Kind, Options
from mcptrials.graders.answer.unit import find_unit
from mcptrials.graders.answer.verdict import AnswerMatch
from mcptrials.graders.answer.wording import folded, innermost


@dataclass(frozen=True, slots=True)
class Rule:
    """What is wrong with an expected value of a kind; and the comparison of all wordings of an answer with it."""

    problem: Callable[[str, Options], str | None]
    compare: Callable[[str, list[str], Options], AnswerMatch]


def _compare_number(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """With a unit a number is a quantity whose unit may be left out."""
    if options.unit:
        return quantity.compare(expected, forms, replace(options, unit_optional=True))
    return number.compare(expected, forms, options)


RULES: Mapping[Kind, Rule] = {
    "number": Rule(number.problem, _compare_number),
    "text": Rule(text.problem, text.compare),
    "id": Rule(identifier.problem, identifier.compare),
    "date": Rule(date.problem, date.compare),
    "datetime": Rule(instant.problem, instant.compare),
    "set": Rule(collection.problem, collection.compare_set),
    "list": Rule(collection.problem, collection.compare_list),
    "boolean": Rule(boolean.problem, boolean.compare),
    "percent": Rule(percent.problem, percent.compare),
    "money": Rule(money.problem, money.compare),
    "quantity": Rule(quantity.problem, quantity.compare),
    "choice": Rule(choice.problem, choice.compare),
    "url": Rule(url.problem, url.compare),
    "phone": Rule(phone.problem, phone.compare),
    "json": Rule(json_value.problem, json_value.compare),
    "none": Rule(absence.problem, absence.compare),
    "regex": Rule(expression.problem, expression.compare),
}

_CASH = "[$\u00a3\u20ac\u00a5\u20b9]"
_WRITTEN: Mapping[Kind, re.Pattern[str]] = {
    "phone": re.compile(r"\+[1-9][0-9 ()-]{7,20}[0-9]"),
    "number": re.compile(r"[-+]?(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?"),
    "percent": re.compile(r"[-+]?[0-9][0-9.,]* ?%"),
    "money": re.compile(rf"[-+]?[A-Z]{{0,3}}{_CASH} ?[0-9][0-9.,]*|[-+]?[0-9][0-9.,]* ?{_CASH}"),
    "url": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+"),
}
_QUANTITY = re.compile(r"[-+]?[0-9][0-9.,]* ([^\d\s]\S*)")
_ID = re.compile(r"(?=\S*[0-9])#?\w[\w./:-]*")
_NONE = frozenset({"not found", "not_found", "none", "n/a"})
_NON_FINITE = frozenset({"nan", "inf", "+inf", "-inf", "infinity", "-infinity"})
"""No number, but meant as one: refused when a task is loaded."""
_TRUTHS = frozenset({"yes", "no", "true", "false"})
_LETTERS = frozenset("ABCDEFGH")
_MAX_GUESSED = 200


def infer(expected: str, options: Options) -> Kind:
    """The kind that an expected value seems to be; text if it is none of the others."""
    written = innermost(expected) if len(expected) <= _MAX_GUESSED else ""
    if options.unit and number.bare(written):
        return "quantity"
    if expected.lstrip()[:1] in ("[", "{") and not json_value.problem(expected, options):
        return "json" if expected.lstrip()[0] == "{" or collection.problem(expected, options) else "list"
    if word := _by_word(written):
        return word
    return _by_pattern(written, options)


def _by_word(written: str) -> Kind | None:
    if folded(written) in _TRUTHS:
        return "boolean"
    if folded(written) in _NONE:
        return "none"
    if folded(written) in _NON_FINITE:
        return "number"
    return "choice" if written in _LETTERS else None


def _by_pattern(written: str, options: Options) -> Kind:
    for kind, pattern in _WRITTEN.items():
        if pattern.fullmatch(written):
            return kind
    if (found := _QUANTITY.fullmatch(written)) and find_unit(found[1]):
        return "quantity"
    if not written.isdigit() and date.problem(written, options) is None:
        return "date"
    if instant.problem(written, options) is None:
        return "datetime"
    return "id" if _ID.fullmatch(written) else "text"
