"""Secrets by value: found and removed in every encoding that our files and screens could show them in.

The values, not the names, decide: a list of suspicious names always misses one. A text is scrubbed of each secret
with its characters as they are or escaped, in any mixture and depth, for JSON, URLs and HTML, as hex, and as base64 at
each of the three byte offsets at which it can stand inside a longer encoded text.
"""

import base64
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcptrials.encoding import dump_line, parse_json

SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|credential|auth|cookie|session", re.IGNORECASE)
_PLAIN = re.compile(r"[+-]?[\d.,:]*|[./~\\].*|[A-Za-z]:\\.*|https?://[^@?]*|true|false|yes|no|on|off", re.IGNORECASE)
_WORD = r"(?:[a-z]+|[A-Z]+|(?:[A-Z][a-z]+)+|\d+|[A-Za-z]{1,3}\d{1,4}[a-z]?)"
_WORDS = re.compile(rf"{_WORD}(?:[-_ ./:@,]{_WORD})*")
MIN_LENGTH = 4
"""Shorter values are no secrets: removing them would shred ordinary text."""
MIN_WORD_LENGTH = 8
"""The same for a number or a single word (`none`, `200000`): other texts, our own records too, are full of them."""
_MIN_PART_LENGTH = 16
_UNESCAPED = re.compile(r"[A-Za-z0-9]*")
_LONGEST_SPELLING = 64
"""Characters that one character of a secret can take up."""
_SHORT_ESCAPES = {'"': '"', "/": "/", "\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def looks_secret(name: str, value: str, *, from_environment: bool = False) -> bool:
    """Whether a setting is treated as a secret: by its name, or since its value is no number, path, URL or words.

    Ordinary words are left alone when they stand in the file, but not when they come `from_environment`: what is kept
    out of a file is usually kept out for a reason.
    """
    plain = _PLAIN.fullmatch(value) is not None
    if len(value) < MIN_LENGTH or (len(value) < MIN_WORD_LENGTH and (plain or value.isalpha())):
        return False
    if not plain and not _WORDS.fullmatch(value):
        return True
    return SECRET_NAME.search(name) is not None or (from_environment and not plain)


def _base64_cores(raw: bytes) -> set[str]:
    """What stays equal in base64 of `raw` at offset 0, 1 and 2: the characters that hold no neighbour's bits."""
    cores = set()
    for offset in range(3):
        first = -(-offset * 8 // 6)
        last = (offset + len(raw)) * 8 // 6
        encoded = base64.b64encode(b"\0" * offset + raw).decode()[first:last]
        cores |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return cores


def _any_case(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _character(char: str) -> str:
    """A pattern of every spelling of one character.

    An escape of JSON stands behind as many backslashes as texts are nested in texts; the bound keeps the search linear.
    """
    if char.isascii() and char.isalnum():
        return char
    if char == "\\":
        return r"(?:\\{1,16}|%(?:25){0,3}5[cC])"
    units = char.encode("utf-16-be", "surrogatepass").hex()
    unicode = r"\\{1,15}u".join(["", *(_any_case(units[i : i + 4]) for i in range(0, len(units), 4))])
    url = "".join(f"%(?:25){{0,3}}{_any_case(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogatepass"))
    ways = [re.escape(char), unicode, url]
    if char in _SHORT_ESCAPES:
        ways.append(rf"\\{{1,15}}{_SHORT_ESCAPES[char]}")
    if char == " ":
        ways.append(r"\+")
    if (entity := html.escape(char)) != char:
        ways.append(entity)
    return f"(?:{'|'.join(ways)})"


@dataclass(frozen=True, slots=True)
class _Secret:
    """One secret, and how to find it."""

    name: str
    value: str
    literals: tuple[str, ...]
    before: re.Pattern[str]
    after: re.Pattern[str]
    """The value as it may be escaped, cut before its longest run of characters that are escaped nowhere: a search that
    begins with a literal is fast."""

    @classmethod
    def of(cls, name: str, value: str) -> "_Secret":
        raw = value.encode("utf-8", "surrogatepass")
        literals = {raw.hex(), raw.hex().upper()} | {core for core in _base64_cores(raw) if len(core) >= MIN_LENGTH}
        cut = value.index(max(_UNESCAPED.findall(value), key=len))
        before, after = ("".join(map(_character, part)) for part in (value[:cut], value[cut:]))
        return cls(name, value, tuple(literals), re.compile(rf"{before}\Z"), re.compile(after))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the secret stands."""
        for literal in self.literals:
            position = text.find(literal)
            while position >= 0:
                yield position, position + len(literal)
                position = text.find(literal, position + 1)
        match = self.after.search(text)
        while match:
            nearest = max(match.start() - _LONGEST_SPELLING * len(self.value), 0)
            if begun := self.before.search(text, nearest, match.start()):
                yield begun.start(), match.end()
            match = self.after.search(text, match.start() + 1)


class Redactor:
    """Replaces secrets by `[secret NAME]`.

    Args:
        secrets: name -> value; values shorter than `MIN_LENGTH` are left alone.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets: tuple[_Secret, ...] = ()
        for name, value in secrets.items():
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """A secret that has come up since; what is written from now on is without it."""
        known = {secret.value for secret in self._secrets}
        parts = [part for part in dict.fromkeys(_parts(value)) if part not in known]
        self._secrets += tuple(_Secret.of(name, part) for part in parts)

    def text(self, text: str) -> str:
        """`text` without any secret."""
        kept, done = [], 0
        for start, end, name in self._merged(text):
            kept += [text[done:start], f"[secret {name}]"]
            done = end
        return "".join([*kept, text[done:]]) if kept else text

    def _merged(self, text: str) -> list[tuple[int, int, str]]:
        """The parts to be replaced: overlapping secrets are one part, named after the first."""
        merged: list[tuple[int, int, str]] = []
        for start, end, name in sorted((*span, secret.name) for secret in self._secrets for span in secret.spans(text)):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
            else:
                merged.append((start, end, name))
        return merged

    def line(self, line: bytes) -> bytes:
        """A line of JSON without any secret; it stays valid JSON."""
        text = line.decode("utf-8", "surrogateescape")
        if self.find(text) is None:
            return line
        try:
            return dump_line(self.value(parse_json(text)))
        except (ValueError, RecursionError):
            return self.text(text).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """A JSON value with every string (keys too) and number scrubbed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value)
        return value

    def _number(self, value: float) -> Any:
        """A number that is a secret, not one that contains it: counts and times must stay numbers."""
        written = str(value)
        name = next((secret.name for secret in self._secrets if secret.value == written), None)
        return value if name is None else f"[secret {name}]"

    def find(self, text: str) -> str | None:
        """The name of a secret that stands in `text`, if any."""
        return next((secret.name for secret in self._secrets if next(secret.spans(text), None)), None)


def _parts(value: str) -> Iterator[str]:
    """A value without outer white space, and each line of it that is long enough to be telling."""
    whole = value.strip()
    if len(whole) >= MIN_LENGTH:
        yield whole
    lines = [line.strip() for line in whole.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _MIN_PART_LENGTH)
