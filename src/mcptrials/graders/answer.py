"""Whether an answer equals an expected value, and why not otherwise."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from re import compile as pattern
from typing import Literal

Kind = Literal["number", "text", "id"]
Reason = Literal["match", "wrong", "hedged", "no_answer", "format"]

MAX_CHARS = 10_000
_NUMBER = pattern(r"[-+]?(?:0|[1-9]\d{0,40})(?:\.\d{1,40})?")
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}


@dataclass(frozen=True, slots=True)
class AnswerMatch:
    """A judgement with its reason, and the detail that a person needs to agree."""

    passed: bool
    reason: Reason
    detail: str


def match_answer(
    expected: str | Sequence[str],
    answer: str | None,
    kind: Kind | None = None,
    *,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
) -> AnswerMatch:
    """Whether `answer` equals `expected`, or one of several.

    Both are normalised by NFKC (though `²` is no 2), outer white space, outer quotes, a final period and case folding;
    numbers are equal as decimals (`1.50` = `1.5`), within the tolerances if given.

    Args:
        kind: `number` compares as decimals only, `id` and `text` never do; None compares both ways.
        abs_tol: largest difference that still matches.
        rel_tol: the same as a share of the expected value.
    """
    alternatives = [expected] if isinstance(expected, str) else list(expected)
    answer = answer or ""
    given = normalise(answer)
    if not given:
        return AnswerMatch(False, "no_answer", "the answer is empty")
    if len(answer) > MAX_CHARS:
        return AnswerMatch(False, "wrong", f"the answer has {len(answer)} characters, more than {MAX_CHARS}")
    for alternative in alternatives:
        wanted = normalise(alternative)
        if kind != "number" and given == wanted:
            return AnswerMatch(True, "match", f"equals {alternative!r}")
        if kind in (None, "number") and _equal_numbers(wanted, given, abs_tol, rel_tol):
            return AnswerMatch(True, "match", f"equals {alternative!r} as a number")
    return AnswerMatch(False, "wrong", f"expected {' or '.join(map(repr, alternatives))}, not {answer!r}")


def normalise(text: str) -> str:
    """NFKC, trimmed, without a final period or outer quotes, case-folded. Longer than `MAX_CHARS` is cut."""
    text = _compatible(text[:MAX_CHARS]).strip()
    for _ in range(2):
        text = text.removesuffix(".").strip()
        if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
            text = text[1:-1].strip()
    return " ".join(text.casefold().split())


def _compatible(text: str) -> str:
    """NFKC, but for what would become the digits of another number: `4²` is not 42, `①` not 1, `½` not a 1 and a 2."""
    if text.isascii():
        return text
    parts = (
        "".join(part) if kept else unicodedata.normalize("NFKC", "".join(part))
        for kept, part in groupby(text, _odd_digit)
    )
    return "".join(parts)


def _odd_digit(char: str) -> bool:
    """Whether NFKC makes digits of a character that is none; full-width and typeset digits are digits."""
    if char.isascii() or unicodedata.category(char) == "Nd":
        return False
    return any(made.isdigit() for made in unicodedata.normalize("NFKC", char))


def as_number(text: str) -> Decimal | None:
    """A normalised text as a number: digits and a point, without an exponent, a leading zero or separators."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _equal_numbers(wanted: str, given: str, abs_tol: float | None, rel_tol: float | None) -> bool:
    expected, actual = as_number(wanted), as_number(given)
    if expected is None or actual is None:
        return False
    allowed = max(Decimal(str(abs_tol or 0)), Decimal(str(rel_tol or 0)) * abs(expected))
    return abs(actual - expected) <= allowed
