"""Kind `json`: one JSON value; the order of keys, white space and the spelling of numbers do not count."""

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed

MAX_DEPTH = 100
_FENCES = ("```json", "```JSON", "```")


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    try:
        _parsed(expected)
    except ValueError as exc:
        return f"it is no JSON value: {exc}"
    return None


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected value."""
    try:
        wanted = _parsed(expected)
    except ValueError:
        return missed(expected, forms[0])
    for form in forms:
        try:
            if _same(wanted, _parsed(form)):
                return matched(expected, "as JSON")
        except ValueError:
            continue
    return missed(expected, forms[0])


def _parsed(text: str) -> Any:
    """The value of a text.

    Raises:
        ValueError: it is no JSON, has a key twice or a number that is none, or is too deep.
    """
    text = text.strip()
    for fence in _FENCES:
        if text.startswith(fence) and text.endswith("```") and len(text) > len(fence) + len("```"):
            text = text[len(fence) : -len("```")]
    if _depth(text) > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} levels")
    return json.loads(
        text, parse_int=_number, parse_float=_number, parse_constant=_refused, object_pairs_hook=_without_doubles
    )


def _depth(text: str) -> int:
    """At least the levels of a JSON text: brackets inside of texts count as well."""
    depth = deepest = 0
    for char in text:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _number(written: str) -> Decimal:
    try:
        return Decimal(written)
    except InvalidOperation:
        raise ValueError("a number beyond all bounds") from None


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return type(one) is type(other) and bool(one == other)
