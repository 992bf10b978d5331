"""Kind `boolean`: yes or no, by one of its words alone."""

from mcptrials.graders.answer import hedge
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import folded, innermost

_YES, _NO = frozenset({"yes", "true", "y"}), frozenset({"no", "false", "n"})


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if _read(innermost(expected)) is not None else "it is no boolean: yes, no, true or false"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected one of the two."""
    wanted, found = _read(innermost(expected)), _read(forms[-1])
    if wanted is not None and wanted == found:
        return matched(expected, "as a boolean")
    if found is not None or wanted is None:
        return missed(expected, forms[0])
    first, _, rest = folded(forms[-1]).partition(" ")
    told = _read(first.rstrip(",.:;"))
    if told == wanted:
        words = rest.replace(",", " ").split()
        if hedge.doubt(rest) or any(_read(word) is not None for word in words):
            return hedged(expected, forms[0], "other words take it back")
        return missed(expected, forms[0], "by its first word")
    return missed(expected, forms[0])


def _read(text: str) -> bool | None:
    word = folded(text)
    return True if word in _YES else False if word in _NO else None
