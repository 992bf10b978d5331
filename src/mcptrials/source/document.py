"""Source: one document of a user's file as plain values, with the line of every key for error messages."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcptrials.errors import UsageError

Key = str | int
Keys = tuple[Key, ...]
MAX_DEPTH = 100
TOO_DEEP = "nested too deeply, or aliases multiply without end"
_MAX_BYTES = 64 << 20


class Unquoted(float):
    """A plain scalar that is a number to YAML or JSON, with the text as written."""

    written: str

    def __new__(cls, number: float, written: str) -> "Unquoted":
        self = super().__new__(cls, number)
        self.written = written
        return self


class UnquotedText(str):
    """A plain scalar that older YAML takes for a date or an octal number, kept as the text that was written."""

    __slots__ = ()


@dataclass(frozen=True)
class Source:
    """One document of a user's file: its value, and where each part of it stands."""

    path: Path
    value: Any
    lines: Mapping[Keys, int]
    """1-based line of each key and list item, by its path inside `value`."""
    overridden: dict[Keys, str] = field(default_factory=dict)
    """What stands elsewhere than in the file: path inside `value` -> where."""

    def where(self, key: Sequence[Key] = ()) -> str:
        """`file:line: key` of the deepest part of `key` that exists."""
        key = tuple(key)
        known = self.known(key)
        place = next((self.overridden[known[:n]] for n in range(len(known) + 1) if known[:n] in self.overridden), None)
        line = self.lines.get(known)
        place = place or (f"{self.path}:{line}" if line else str(self.path))
        return f"{place}: {dotted(key)}" if key else place

    def known(self, key: Keys) -> Keys:
        """The longest beginning of `key` that names a place."""
        while key and key not in self.lines and key not in self.overridden:
            key = key[:-1]
        return key


def characters(text: str) -> str:
    """`text` with the halves of characters that escapes can spell put together.

    Raises:
        ValueError: a half stands alone; it is no character, and no file can hold it.
    """
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as exc:
        raise ValueError("a lone surrogate is no character") from exc


def dotted(key: Iterable[Key]) -> str:
    """A path of keys as a person writes it: `servers.tracker.args[0]`."""
    return "".join(map(_step, key)).removeprefix(".")


def _step(part: Key) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if re.fullmatch(r"[\w-]+", part) else f"[{json.dumps(part, ensure_ascii=False)}]"


def read_text(path: Path) -> str:
    """A user's text file.

    Raises:
        UsageError: missing, no regular file, too large, or not UTF-8.
    """
    try:
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise UsageError(f"the file {what}", where=str(path), hint="check the path")
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError("the file is larger than 64 MiB", where=str(path), hint="split it")
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as exc:
        if not isinstance(exc, UnicodeDecodeError):
            raise UsageError(f"cannot read the file: {_reason(exc)}", where=str(path)) from exc
        line = exc.object.count(b"\n", 0, exc.start) + 1
        what = f"the file is not UTF-8: {exc.reason}"
        raise UsageError(what, where=f"{path}:{line}", hint="save it as UTF-8") from exc


def _reason(exc: Exception) -> str:
    return getattr(exc, "strerror", None) or str(exc)
