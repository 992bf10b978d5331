"""Kind `choice`: the label of one option, such as `B` or `Option 2`."""

import re

from mcptrials.graders.answer import text
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import folded, innermost, spaced

_LABEL = re.compile(
    r"(?:(?:the )?(?:option|choice|answer|alternative|letter)(?: is|:)? ?)?[(\[]?([A-Za-z]|[0-9]{1,2})[)\]]?[.:)]?",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"(?:option )?[(\[]?([A-Za-z]|[0-9]{1,2})(?:[)\].:]|\)[.:]) +(?=\S)", re.IGNORECASE)
_ALONE = re.compile(r"(?<![\w'])(?:[A-Z]|[0-9]{1,2})(?![\w'])")


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer chooses the expected option, and no other."""
    wanted, last = _label(innermost(expected), options), spaced(forms[-1])
    if wanted is None:
        return text.compare(expected, forms, options)
    if any(_label(form, options) == wanted for form in forms):
        return matched(expected, "as a choice")
    labels = {_case(label, options) for label in _ALONE.findall(last)}
    if labels - {wanted} and wanted in labels:
        return hedged(expected, forms[0], "another option stands beside it")
    if found := _LABELLED.match(last):
        doubt = text.doubted(expected, last)
        if _case(found[1], options) == wanted:
            return (
                hedged(expected, forms[0], f"{doubt!r} stands beside it") if doubt else matched(expected, "as a choice")
            )
    if doubt := text.doubted(expected, last):
        return hedged(expected, forms[0], f"{doubt!r} stands beside it")
    return missed(expected, forms[0], "as a part of the answer" if wanted in labels else None)


def _label(written: str, options: Options) -> str | None:
    found = _LABEL.fullmatch(spaced(written))
    return _case(found[1], options) if found else None


def _case(label: str, options: Options) -> str:
    return label if options.case_sensitive else folded(label)
