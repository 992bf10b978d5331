"""Kind `phone`: the digits of a telephone number, however they are grouped."""

import re

from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed
from mcptrials.graders.answer.wording import innermost, spaced

_PHONE = re.compile(r"(?:tel:|(?:tel|phone)[.:]? )?(?:\+|00)?[0-9][0-9 ().\-/]{1,40}", re.IGNORECASE)
_MIN_DIGITS, _MAX_DIGITS = 3, 17
_LOCAL = 7
"""Digits of a number without its area."""


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if _digits(innermost(expected)) else "it is no telephone number, such as +15551234567"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer has the expected digits."""
    wanted, found = _digits(innermost(expected)), _digits(forms[-1])
    if not wanted or not found:
        return missed(expected, forms[0])
    if wanted == found:
        return matched(expected, "as a telephone number")
    shorter = min(wanted, found.lstrip("0"), key=len)
    tail = len(shorter) >= _LOCAL and (wanted.endswith(shorter) and found.endswith(shorter))
    return missed(expected, forms[0], "without the country code" if tail else None)


def _digits(text: str) -> str | None:
    text = spaced(text)
    if text.startswith("("):
        text = text.replace("(", "", 1)
    if text.startswith("+("):
        text = text.replace("(", "", 1)
    if not _PHONE.fullmatch(text):
        return None
    digits = re.sub("[^0-9]", "", text)
    if text.startswith("00") and len(digits) > len("00") + _LOCAL:
        digits = digits[2:]
    return digits if _MIN_DIGITS <= len(digits) <= _MAX_DIGITS else None
