"""Kind `regex`: a pattern that the whole answer must fit, in bounded time."""

import regex

from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed

TIMEOUT_S = 0.25
MAX_PATTERN = 1000
"""Characters: on a longer one the engine takes seconds for an answer that nearly fits, whatever its time limit."""


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    if len(expected) > MAX_PATTERN:
        return f"a pattern of {len(expected)} characters is too long; {MAX_PATTERN} are the most"
    try:
        pattern = regex.compile(expected)
    except (regex.error, RecursionError, OverflowError) as exc:
        return f"it is no regular expression: {exc}"
    try:
        empty = pattern.fullmatch("", timeout=TIMEOUT_S)
    except TimeoutError:
        empty = None
    return "it fits an empty answer as well" if empty else None


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether one wording of the answer fits the pattern as a whole.

    Raises:
        TimeoutError: the pattern takes too long on this answer.
    """
    if problem(expected, options):
        return missed(expected, forms[0])
    if any(regex.fullmatch(expected, form, timeout=TIMEOUT_S) for form in forms):
        return matched(expected, "as a pattern")
    part = regex.search(expected, forms[-1], timeout=TIMEOUT_S)
    return missed(expected, forms[0], "as a part of the answer" if part else None)
