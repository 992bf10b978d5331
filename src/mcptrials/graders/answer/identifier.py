"""Kind `id`: a key or code, never a number; a leading `#` and case do not count, separators and zeros do."""

import re

from mcptrials.graders.answer import text
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import folded, quoted_only, spaced

_TOKEN = re.compile(r"[^\s,;()\[\]{}\"'`<>|]+")
_LABEL = re.compile(
    r"(?:the )?(?:id|key|code|issue|ticket|number)(?: (?:id|key|is|number))?(?: is|:| =|=)? +(?=\S+$)", re.IGNORECASE
)
_MAX_LABELLED = 200
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether one wording of the answer is the expected id, alone."""
    wanted = {_key(form, options) for form in quoted_only(expected)}
    last = forms[-1]
    found = [
        _key(form, options) for form in (*forms, _LABEL.sub("", last, count=1) if len(last) < _MAX_LABELLED else last)
    ]
    if not wanted.isdisjoint(found):
        return matched(expected, "as an id")
    tokens = {_key(token, options).strip(".:!?*") for token in _TOKEN.findall(last)}
    if not wanted.isdisjoint(tokens):
        others = [token for token in tokens - wanted if any(map(str.isdigit, token))]
        if others or (doubt := text.doubted(expected, last)):
            return hedged(expected, forms[0], f"{(min(others) if others else doubt)!r} stands beside it")
    looser = text.looser(expected, last)
    if not looser and _ZEROS.sub("", folded(expected)) == _ZEROS.sub("", folded(last)):
        looser = "without leading zeros"
    return missed(expected, forms[0], looser)


def _key(written: str, options: Options) -> str:
    written = written.removeprefix("#")
    return spaced(written) if options.case_sensitive else folded(written)
