"""Kind `none`: the word agreed on for `there is nothing`, and no description of it."""

import re

from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed
from mcptrials.graders.answer.wording import folded, quoted_only, spaced

_ABSENT = re.compile(
    r"\b(?:no|none|not|nothing|nobody|null|n/?a|never|without|empty|zero|cannot|unable|missing)\b|n't\b", re.IGNORECASE
)


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the agreed word; `NOT_FOUND`, `not-found` and `not found` are one."""
    wanted = {_key(form, options) for form in quoted_only(expected)}
    if not wanted.isdisjoint(_key(form, options) for form in forms):
        return matched(expected)
    absent = _ABSENT.search(forms[-1])
    return missed(
        expected, forms[0], f"if {absent[0]!r} meant it: ask for the word, or add an alias" if absent else None
    )


def _key(text: str, options: Options) -> str:
    text = text.replace("_", " ").replace("-", " ")
    return spaced(text) if options.case_sensitive else folded(text)
