"""Secrets by value: which values are secrets, and how they are found and removed in every spelling.

The value decides, not only the name: a list of suspicious names always misses one.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from mcptrials.encoding import dump_line, parse_json
from mcptrials.spelling import MIN_LENGTH, Page, Spelling

SECRET_NAME = re.compile(
    r"key(?!word|board|note|stone|space)|token(?!iz)|secret(?!ary)|pass(?!enger|ive|age)|pwd|credential"
    r"|auth(?!ors?(?![a-z]))|cookie|session",
    re.IGNORECASE,
)
_MODEL_NAME = re.compile(r"model", re.IGNORECASE)
_PLAIN = re.compile(r"[+-]?[\d.,:]*|[./~\\].*|[A-Za-z]:\\.*|https?://[^@?]*|true|false|yes|no|on|off", re.IGNORECASE)
_LETTERS = r"[a-z]{1,24}(?:[A-Z][a-z]{1,24}){0,4}|[A-Z]{1,24}|(?:[A-Z][a-z]{1,24}){1,5}"
_NUMBERED = r"[A-Za-z]\d{1,2}|[A-Za-z][a-z]{1,11}\d{1,3}|\d{1,3}[A-Za-z]|\d{2}T\d{2}"
"""As in v2, qwen3, utf8, 70B, and a date with its time."""
_WORDS = re.compile(rf"(?:{_LETTERS}|\d+|{_NUMBERED})(?:[-_ ./:@,](?:{_LETTERS}|\d+|{_NUMBERED}))*")
MIN_WORD_LENGTH = 8
"""For a value that its name does not call secret, and for a number or a single word whatever its name (`none`,
`200000`): other texts are full of them."""
_MIN_PART_LENGTH = 16

Shape = Literal["keep"] | Mapping[str, "Shape"]
"""Which parts of our own data are structure: `keep`, or the shapes of a mapping's values by key, `*` for other keys.
What has no shape is text of others."""


def looks_secret(name: str, value: str) -> bool:
    """Whether a setting is treated as a secret: by its name, or since its value is no number, path, URL or words.

    What a name calls secret is one if it is no number or single word that is short. Under any other name it takes 8
    characters that are not made of words and numbers; the name of a model is one, however odd.
    """
    if len(value) < MIN_LENGTH:
        return False
    plain = _PLAIN.fullmatch(value) is not None
    if SECRET_NAME.search(name):
        return len(value) >= MIN_WORD_LENGTH or not (plain or value.isalpha())
    return len(value) >= MIN_WORD_LENGTH and not (plain or _WORDS.fullmatch(value) or _MODEL_NAME.search(name))


class Redactor:
    """Replaces secrets by `[secret NAME]`.

    Args:
        secrets: name -> value; values shorter than `MIN_LENGTH` are left alone.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets: tuple[tuple[str, Spelling], ...] = ()
        self._known: set[str] = set()
        for name, value in secrets.items():
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """A secret that has come up since; what is written from now on is without it."""
        for part in _parts(value):
            if part not in self._known:
                self._known.add(part)
                self._secrets = (*self._secrets, (name, Spelling.of(part)))

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
        page = Page(text)
        for start, end, name in sorted((*span, name) for name, secret in self._secrets for span in secret.spans(page)):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
            else:
                merged.append((start, end, name))
        return merged

    def line(self, line: bytes, shape: Shape | None = None) -> bytes:
        """A line of JSON without any secret; it stays valid JSON, and its structure as it is."""
        if not self._secrets:
            return line
        text = line.decode("utf-8", "surrogateescape")
        page = Page(text)
        if not page.cut and self._found(page) is None:
            return line
        try:
            value = parse_json(text)
            clean = self.value(value, shape)
            return line if clean == value else dump_line(clean)
        except (ValueError, RecursionError):
            return self.text(text).encode("utf-8", "surrogateescape")

    def value(self, value: Any, shape: Shape | None = None) -> Any:
        """A JSON value with every string (keys too) and number scrubbed that `shape` does not keep."""
        if shape == "keep":
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(item, shape) for item in value]
        if isinstance(value, dict):
            if shape is None:
                return {self.text(str(key)): self.value(item) for key, item in value.items()}
            return {key: self.value(item, shape.get(key, shape.get("*"))) for key, item in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value)
        return value

    def _number(self, value: float) -> Any:
        """A number that is a secret, not one that contains it: counts and times must stay numbers."""
        written = str(value)
        name = next((name for name, secret in self._secrets if secret.value == written), None)
        return value if name is None else f"[secret {name}]"

    def find(self, text: str) -> str | None:
        """The name of a secret that stands in `text`, if any."""
        return self._found(Page(text))

    def _found(self, page: Page) -> str | None:
        return next((name for name, secret in self._secrets if next(secret.spans(page), None)), None)


def _parts(value: str) -> Iterator[str]:
    """A value without outer white space, and each line of it that is long enough to be telling."""
    whole = value.strip()
    if len(whole) >= MIN_LENGTH:
        yield whole
    lines = [line.strip() for line in whole.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _MIN_PART_LENGTH)
