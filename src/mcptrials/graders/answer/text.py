"""Kind `text`: the same words, punctuation and accents; case and presentation do not count."""

import re
import unicodedata

from mcptrials.graders.answer import hedge
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import folded, quoted_only, spaced, wordings

_NO_WORD = re.compile(r"[\W_]+")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u043a\u043c\u0442\u0432\u043d\u03bf\u03b1\u03c1\u03bd\u03b9\u03ba\u03c4",
    "aeopcxyijskmtbhoapvikt",
)
"""Cyrillic and Greek small letters, and the Latin ones whose shape they have."""


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether one wording of the answer is the expected text."""
    wanted = {_key(form, options) for form in quoted_only(expected)}
    found = [_key(form, options) for form in forms]
    if not wanted.isdisjoint(found):
        return matched(expected)
    if doubt := doubted(expected, forms[-1]):
        return hedged(expected, forms[0], f"{doubt!r} stands beside it")
    return missed(expected, forms[0], looser(expected, forms[-1]))


def same(expected: str, answer: str, options: Options) -> bool:
    """Whether an answer is a text, for values that are given as words."""
    return compare(expected, wordings(answer), options).passed


def doubted(expected: str, answer: str) -> str | None:
    """The word that takes the expected text back, where the answer holds it among others."""
    wanted, found = folded(expected), folded(answer)
    before, held, after = found.partition(wanted) if wanted else (found, "", "")
    if not held or any(char.isalnum() for char in before[-1:] + after[:1]):
        return None
    return hedge.doubt(before) or hedge.doubt(after)


def looser(expected: str, answer: str) -> str | None:
    """The rule by which an answer would have been the expected text."""
    wanted, found = folded(expected), folded(answer)
    if wanted == found:
        return "in another case"
    if _bare(wanted) and _bare(wanted) == _bare(found):
        return "without punctuation and spaces"
    if _unaccented(wanted) == _unaccented(found):
        return "without accents"
    if wanted.translate(_LOOK_ALIKES) == found.translate(_LOOK_ALIKES):
        return "with letters of another script that look alike"
    if _ARTICLES.sub("", wanted).split() == _ARTICLES.sub("", found).split() != []:
        return "without articles"
    if sorted(_words(wanted)) == sorted(_words(found)) != []:
        return "in another order"
    if f" {' '.join(_words(wanted))} " in f" {' '.join(_words(found))} ":
        return "as a part of the answer"
    return None


def _key(text: str, options: Options) -> str:
    if len(text) == 1:
        text = unicodedata.normalize("NFKC", text)  # a digit in a circle that stands alone is a label
    return spaced(text) if options.case_sensitive else folded(text)


def _words(text: str) -> list[str]:
    return _NO_WORD.sub(" ", text).split()


def _bare(text: str) -> str:
    return _NO_WORD.sub("", text)


def _unaccented(text: str) -> str:
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
