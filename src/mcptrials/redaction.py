"""Secrets by value: found and removed in every encoding that our files and screens could show them in.

The values, not the names, decide: a list of suspicious names always misses one. A text is scrubbed of each secret
raw, JSON-escaped, URL-encoded, as hex, and as base64 at each of the three byte offsets at which it can stand inside a
longer encoded text.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus

_SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|credential|auth|cookie|session", re.IGNORECASE)
_PLAIN = re.compile(r"[+-]?[\d.,:]*|[./~\\].*|[A-Za-z]:\\.*|https?://[^@?]*|true|false|yes|no|on|off", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]+([-_ .][a-z]+)*|[A-Z]+([-_ ][A-Z]+)*")
MIN_LENGTH = 4
"""Shorter values are no secrets: removing them would shred ordinary text."""


def looks_secret(name: str, value: str, *, from_environment: bool = False) -> bool:
    """Whether a setting is treated as a secret: by its name, or since its value is no number, path or plain URL.

    Ordinary words are left alone when they stand in the file, but not when they come `from_environment`: what is kept
    out of a file is usually kept out for a reason.
    """
    if len(value) < MIN_LENGTH:
        return False
    if _SECRET_NAME.search(name):
        return True
    return not (_PLAIN.fullmatch(value) or (_WORDS.fullmatch(value) and not from_environment))


def _base64_cores(raw: bytes) -> set[str]:
    """What stays equal in base64 of `raw` at offset 0, 1 and 2: the characters that hold no neighbour's bits."""
    cores = set()
    for offset in range(3):
        first = -(-offset * 8 // 6)
        last = (offset + len(raw)) * 8 // 6
        encoded = base64.b64encode(b"\0" * offset + raw).decode()[first:last]
        cores |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return cores


def _spellings(secret: str) -> set[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    twice = {json.dumps(text)[1:-1] for text in escaped}
    urls = {quote(raw, safe=""), quote_plus(raw), quote(raw)}
    spellings = {secret, raw.hex(), raw.hex().upper()} | escaped | twice | urls | {u.lower() for u in urls}
    return spellings | {core for core in _base64_cores(raw) if len(core) >= MIN_LENGTH}


class Redactor:
    """Replaces secrets by `[secret NAME]`.

    Args:
        secrets: name -> value; values shorter than `MIN_LENGTH` are left alone.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        for name, value in secrets.items():
            if len(value) >= MIN_LENGTH:
                self._names |= {spelling: name for spelling in _spellings(value) if spelling not in self._names}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """`text` without any secret."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: f"[secret {self._names[match.group()]}]", text)

    def line(self, line: bytes) -> bytes:
        """A line of JSON without any secret."""
        if self._pattern is None:
            return line
        return self.text(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """A JSON value with every string (keys too) scrubbed."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        return value

    def find(self, text: str) -> str | None:
        """The name of a secret that stands in `text`, if any."""
        match = self._pattern.search(text) if self._pattern else None
        return self._names[match.group()] if match else None
