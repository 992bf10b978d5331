"""Where one text stands in another, however it is spelled there: escaped, encoded, wrapped or cut.

Its characters may be escaped for JSON, URLs and HTML in any mixture and depth; the whole may be hex, or base64 at each
of the three byte offsets at which it can stand inside a longer encoded text. Each form may be broken by line ends, or
be cut where `excerpt` left its mark.
"""

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from mcptrials.excerpt import CUT

MIN_LENGTH = 4
"""Shorter texts are not looked for."""
_MIN_PART = 8
"""Characters of a cut text that are telling; of a short one, half of it is."""
_HEX_BYTES = 12
"""How much of a long text must be there in hex; the rest is whatever follows in hex."""
_LONGEST_SPELLING = 64
"""Characters that one character can take up."""
_UNESCAPED = re.compile(r"[A-Za-z0-9]*")
_SHORT_ESCAPES = {'"': '"', "/": "/", "\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ALNUM = r"(3\d|[46][1-9a-fA-F]|[57][\daA])"
_ALNUM_DECIMAL = r"(4[89]|5[0-7]|6[5-9]|[78]\d|90|9[789]|1[01]\d|12[012])"
_ESCAPED_LETTER = re.compile(
    rf"\\{{1,16}}[uU]0{{2,6}}{_ALNUM}|%(?:25){{0,4}}{_ALNUM}"
    rf"|&(?:amp;){{0,3}}#(?:0{{0,6}}{_ALNUM_DECIMAL}|[xX]0{{0,6}}{_ALNUM});"
)
"""A letter or digit that no one needs to escape, but may. All bounds keep the search linear."""
_DECIMAL_GROUP = 3
_LINE_END = re.compile(r"(?:\\{1,16}[rn]|[\r\n]|%0[aAdD])[ \t]{0,16}")
_LINE_WIDTH = 60
"""Lines of base64 are at least so long (RFC 2045: 76, RFC 7468: 64; some programs: 60)."""
_HEX_GAP = r"(?:[^0-9A-Za-z]{1,8}(?:r\\{1,8})?[nrt]?(?:0?[xX])?)?"
"""What may stand between two bytes in hex: `73 6b`, `73:6b`, `\\x73\\x6b`, a line end."""
_CUT_HERE = re.compile(
    r"(?:\\{1,16}(?:[uUx][0-9a-fA-F]{0,7})?|%[0-9a-fA-F]{0,4}|&[#\w]{0,8})?"  # half an escape
    r"(?:\\{1,16}[rn]|[\r\n]){0,4}(?:\[\.{0,3})?\[\.\.\."
)
_CUT_BEFORE = re.compile(r"\.\.\.\](?:\\{1,16}[rn]|\s){0,4}[0-9a-fA-Fu;#]{0,8}\Z")
_CUT_REACH = 96


@dataclass(frozen=True, slots=True)
class _View:
    """A text with some of its parts replaced or left out, and where each place of it is in the original."""

    text: str
    places: list[int]
    moved: list[int]
    """How far the original is ahead, from each of the places on."""

    def original(self, place: int) -> int:
        return place + self.moved[bisect_right(self.places, place) - 1]

    @classmethod
    def of(cls, text: str, pattern: re.Pattern[str]) -> "_View | None":
        """`text` with every match replaced by the letter it stands for, or left out; None without a match."""
        kept: list[str] = []
        places, moved, done, length = [0], [0], 0, 0
        for match in pattern.finditer(text):
            new = _letter(match)
            kept += [text[done : match.start()], new]
            length += match.start() - done + len(new)
            done = match.end()
            places.append(length)
            moved.append(done - length)
        return cls("".join([*kept, text[done:]]), places, moved) if kept else None


def _letter(match: re.Match[str]) -> str:
    """What an escape stands for; nothing for a line end."""
    if match.lastindex is None:
        return ""
    return chr(int(match.group(match.lastindex), 10 if match.lastindex == _DECIMAL_GROUP else 16))


class Page:
    """A text as it is searched for many others; what only some texts need is made when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def unescaped(self) -> _View | None:
        text = self.text
        if "u00" in text or "%" in text or ("&" in text and "#" in text):  # far cheaper than the pattern
            return _View.of(text, _ESCAPED_LETTER)
        return None

    @cached_property
    def joined(self) -> _View | None:
        """Without line ends."""
        return _View.of(self.plainest, _LINE_END)

    @property
    def plainest(self) -> str:
        return self.unescaped.text if self.unescaped else self.text

    @cached_property
    def cut(self) -> bool:
        return CUT[:-1] in self.text

    def original(self, start: int, end: int) -> tuple[int, int]:
        """A place in `plainest` as one in the text."""
        view = self.unescaped
        return (view.original(start), view.original(end)) if view else (start, end)


@dataclass(frozen=True, slots=True)
class Spelling:
    """One text, and how to find it."""

    value: str
    literals: tuple[str, ...]
    """Base64, and the text itself."""
    pieces: tuple[str, ...]
    """Of each literal, one more than line ends can break: without any of them none is there."""
    forms: tuple[str, ...]
    """How it may begin or end at a cut."""
    before: re.Pattern[str]
    after: re.Pattern[str]
    """The text as it may be escaped, cut before its longest run of characters that need no escape: a search that begins
    with a literal is fast."""
    hex: re.Pattern[str]

    @classmethod
    def of(cls, value: str) -> "Spelling":
        raw = value.encode("utf-8", "surrogatepass")
        cores = {core for core in _base64_cores(raw) if len(core) >= MIN_LENGTH}
        cut = value.index(max(_UNESCAPED.findall(value), key=len))
        before, after = ("".join(map(_character, part)) for part in (value[:cut], value[cut:]))
        escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value)}
        urls = {quote(value, safe="", errors="surrogatepass"), quote(value, errors="surrogatepass")}
        forms = {value, raw.hex(), raw.hex().upper()} | cores | escaped | urls
        literals = tuple(cores | {value})
        return cls(
            value=value,
            literals=literals,
            pieces=tuple({piece for literal in literals for piece in _pieces(literal)}),
            forms=tuple(forms),
            before=re.compile(rf"{before}\Z"),
            after=re.compile(after),
            hex=_hex_pattern(raw),
        )

    def spans(self, page: Page) -> Iterator[tuple[int, int]]:
        """Where it stands."""
        yield from self._spans(page.text)
        if page.unescaped is not None:
            yield from (page.original(*span) for span in self._spans(page.plainest))
        if self._in_pieces(page.plainest):
            yield from self._broken_spans(page)
        if page.cut:
            yield from (page.original(*span) for span in self._cut_spans(page.plainest))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        yield from (match.span() for match in self.hex.finditer(text))
        match = self.after.search(text)
        while match:
            nearest = max(match.start() - _LONGEST_SPELLING * len(self.value), 0)
            if begun := self.before.search(text, nearest, match.start()):
                yield begun.start(), match.end()
            match = self.after.search(text, match.start() + 1)

    def _in_pieces(self, text: str) -> bool:
        for piece in self.pieces:  # noqa: SIM110 - a generator would cost more than the search
            if piece in text:
                return True
        return False

    def _broken_spans(self, page: Page) -> Iterator[tuple[int, int]]:
        """Literals, also such as are broken by line ends."""
        yield from (page.original(*span) for span in self._literal_spans(page.plainest))
        if page.joined:
            for start, end in self._literal_spans(page.joined.text):
                yield page.original(page.joined.original(start), page.joined.original(end - 1) + 1)

    def _literal_spans(self, text: str) -> Iterator[tuple[int, int]]:
        for literal in self.literals:
            yield from ((place, place + len(literal)) for place in _places(text, literal))

    def _cut_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The beginning of the text before a cut, and its end after one."""
        for form in self.forms:
            least = min(_MIN_PART, max(len(form) // 2, MIN_LENGTH - 1))
            for start in _places(text, form[:least]):
                end = start + _common(text[start : start + len(form)], form)
                if _CUT_HERE.match(text, end):
                    yield start, end
            for place in _places(text, form[-least:]):
                end = place + least
                start = end - _common(text[max(end - len(form), 0) : end][::-1], form[::-1])
                if _CUT_BEFORE.search(text, max(start - _CUT_REACH, 0), start):
                    yield start, end


def _pieces(literal: str) -> Iterator[str]:
    size = max(len(literal) // (len(literal) // _LINE_WIDTH + 2), 1)
    return (literal[start : start + size] for start in range(0, len(literal) - size + 1, size))


def _places(text: str, part: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _base64_cores(raw: bytes) -> set[str]:
    """What stays equal in base64 of `raw` at offset 0, 1 and 2: the characters that hold no neighbour's bits."""
    cores = set()
    for offset in range(3):
        first = -(-offset * 8 // 6)
        last = (offset + len(raw)) * 8 // 6
        encoded = base64.b64encode(b"\0" * offset + raw).decode()[first:last]
        cores |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return cores


def _hex_pattern(raw: bytes) -> re.Pattern[str]:
    pairs = [_any_case(f"{byte:02x}") for byte in raw[:_HEX_BYTES]]
    rest = len(raw) - len(pairs)
    return re.compile(_HEX_GAP.join(pairs) + (rf"(?:{_HEX_GAP}[0-9a-fA-F]{{2}}){{0,{rest}}}" if rest else ""))


def _any_case(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _character(char: str) -> str:
    """A pattern of every spelling of one character; escaped letters and digits are unescaped before the search.

    An escape of JSON stands behind as many backslashes as texts are nested in texts; the bound keeps the search linear.
    """
    if char.isascii() and char.isalnum():
        return char
    if char == "\\":
        return r"(?:\\{1,15}u005[cC]|\\{1,16}|%(?:25){0,3}5[cC]|&(?:amp;){0,3}#(?:0{0,4}92|[xX]0{0,4}5[cC]);)"
    units = char.encode("utf-16-be", "surrogatepass").hex()
    unicode = r"\\{1,15}u".join(["", *(_any_case(units[i : i + 4]) for i in range(0, len(units), 4))])
    url = "".join(f"%(?:25){{0,3}}{_any_case(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogatepass"))
    entity = rf"&(?:amp;){{0,3}}#(?:0{{0,4}}{ord(char)}|[xX]0{{0,4}}{_any_case(f'{ord(char):x}')});"
    ways = [re.escape(char), unicode, url, entity]
    if char.isascii():
        ways.append(rf"\\{{1,15}}x{_any_case(f'{ord(char):02x}')}")
    if char in _SHORT_ESCAPES:
        ways.append(rf"\\{{1,15}}{_SHORT_ESCAPES[char]}")
    if char == " ":
        ways.append(r"\+")
    if (named := html.escape(char)) != char:
        ways.append(named)
    return f"(?:{'|'.join(ways)})"
