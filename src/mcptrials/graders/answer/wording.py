"""The wordings of an answer: as it was written, and without what only presents it."""

import html
import re
import unicodedata
from itertools import groupby

MAX_CHARS = 10_000
_MAX_PEELS = 12

_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201f\u2033", '"'),
        # Invisible: zero-width, soft hyphen, direction marks and isolates. Overrides (U+202D, U+202E) stay, they
        # show another text than the one that is written.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2066\u2067\u2068\u2069\ufeff", None),
    }
)
_PLAIN = re.compile(r"[A-Za-z0-9 ,:;/%@+()-]+(?:[._][A-Za-z0-9 ,:;/%@+()-]+)*")
_TAG = re.compile(r"</?(?:b|i|u|em|strong|code|span|p|pre|tt|mark|small|big|div)(?: [^<>]{0,200})?/?>", re.IGNORECASE)
_LONE_TAG = re.compile(rf"`?(?:{_TAG.pattern}|<br ?/?>)`?", re.IGNORECASE)
"""A tag that is the answer, and presents nothing."""
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_PAIRS = (
    ("***", "***"), ("**", "**"), ("*", "*"), ("```", "```"), ("`", "`"), ("$$", "$$"), ("$", "$"), ('"', '"'),
    ("'", "'"), ("\u00ab", "\u00bb"), (r"\(", r"\)"), (r"\[", r"\]"),
)  # fmt: skip
_UNDERLINES = ("___", "__", "_")
_FENCE_NAME = re.compile(r"```[A-Za-z0-9_+-]{0,20}\n")
_LATEX_CALL = re.compile(r"\\(?:boxed|text(?:bf|it|rm|tt|sf)?|math(?:bf|rm|it|tt|sf)|emph|mbox|fbox)\s?\{([^{}]*)\}")
_LATEX_MATH = re.compile(r"(\${1,2})\s*(\\[A-Za-z]+\s?\{.*\})\s*\1", re.DOTALL)
_LATEX_SPACE = re.compile(r"\\[,;:! ]|\{,\}")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\{([0-9]{1,40})\}\{([0-9]{1,40})\}")
_LATEX_SIGNS = {r"\times": "\u00d7", r"\cdot": "\u00b7", r"\%": "%", r"\$": "$", r"\_": "_", r"\#": "#", r"\&": "&"}
_MARK = re.compile(r"(?:#{1,6}|>) |[-*\u2022] (?=[^\W\d][^\n]*\Z)")
_EMPHASIS = re.compile(r"(?<![\w*`])(\*\*|`)(?=\S)([^*`\n]*[^\s*`])\1(?![\w*`])")
_WRAPPER = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:the|my) )?(?:(?:final|correct|right) )?"
    r"(?:answer|result|solution)(?: is:?|:|=| =| :) *(?=\S)",
    re.IGNORECASE,
)


def wordings(text: str) -> list[str]:
    """The text as it was written, then without noise of encoding, then as each layer of presentation is taken off.

    The last one may be empty. Case, inner punctuation, articles and accents stay.
    """
    found = list(dict.fromkeys((text.strip(), plain(text))))
    last = found[-1]
    if len(last) > MAX_CHARS or (_PLAIN.fullmatch(last) and not (_WRAPPER.match(last) or _MARK.match(last))):
        return found
    for _ in range(_MAX_PEELS):
        peeled = _peeled(found[-1])
        if peeled == found[-1]:
            break
        found.append(peeled)
    return found


def plain(text: str) -> str:
    """NFKC, entities, dashes, quotes, invisible characters, inline HTML and LaTeX."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return text
    if "&" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = compatible(text.translate(_SAME)).translate(_SAME)
    if "<" in text and not _LONE_TAG.fullmatch(text):
        text = _TAG.sub("", _BREAK.sub("\n", text))
    if "\\" in text or "{,}" in text:
        text = _without_latex(text)
    return text.strip()


def quoted_only(text: str) -> list[str]:
    """The wordings of an expected value: it may stand in quotes or end with a period, but is no sentence."""
    found = [plain(text)]
    if found[0][:1].isalnum() and found[0][-1:].isalnum():
        return found
    for _ in range(2):
        inner = _unpaired(found[-1].removesuffix(".").strip(), ('"', '"'), ("'", "'"), ("`", "`"), ("\u00ab", "\u00bb"))
        if inner != found[-1]:
            found.append(inner)
    return found


def innermost(expected: str) -> str:
    """The last wording of an expected value."""
    return quoted_only(expected)[-1]


def folded(text: str) -> str:
    """Without case, and with single spaces."""
    return " ".join(text.casefold().split())


def spaced(text: str) -> str:
    """With single spaces."""
    return " ".join(text.split())


def on_one_line(text: str) -> str:
    """With single spaces, and a semicolon where a line ends: numbers of two lines are two."""
    return "; ".join(filter(None, map(spaced, text.splitlines()))) if "\n" in text else spaced(text)


def normalise(text: str) -> str:
    """The innermost wording of an answer, without case; longer than `MAX_CHARS` is cut."""
    return folded(wordings(text[:MAX_CHARS])[-1])


def compatible(text: str) -> str:
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


def _without_latex(text: str) -> str:
    if math := _LATEX_MATH.fullmatch(text):
        text = math[2]  # first, as the signs of dollars inside look alike
    text = _LATEX_SPACE.sub(lambda space: "," if space[0] == "{,}" else " ", text)
    text = _LATEX_FRACTION.sub(r"\1/\2", text)
    for name, sign in _LATEX_SIGNS.items():
        text = text.replace(name, sign)
    for _ in range(3):  # calls inside calls
        text = _LATEX_CALL.sub(r"\1", text)
    return text


def _peeled(text: str) -> str:
    """One layer less."""
    text = text.strip()
    if text[-1:] in (".", "!") and text[-2:-1] not in (".", "!"):
        return text[:-1].rstrip()
    if text.startswith("```") and text.endswith("```"):
        text = _FENCE_NAME.sub("```", text, count=1)
    if (inner := _unpaired(text, *_PAIRS)) != text or (inner := _without_underlines(text)) != text:
        return inner
    if (found := _MARK.match(text)) or (found := _WRAPPER.match(text)):
        return text[found.end() :]
    return _EMPHASIS.sub(r"\2", text)


def _unpaired(text: str, *pairs: tuple[str, str]) -> str:
    """Without the first pair that stands around all of it, and nowhere inside."""
    for opening, closing in pairs:
        if len(text) >= len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : -len(closing)]
            if opening not in inner:
                return inner.strip()
    return text


def _without_underlines(text: str) -> str:
    """Emphasis by underlines, unless they may belong to a name such as `__init__`."""
    for mark in _UNDERLINES:
        inner = text[len(mark) : -len(mark)]
        if text.startswith(mark) and text.endswith(mark) and inner and not inner.isidentifier():
            return inner.strip("_") if "_" not in inner.strip("_") else text
    return text
