"""YAML that holds whatever texts it is given: no name or description can end its line, its quotes or its comment."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_PLAIN = re.compile(r"-{0,2}[A-Za-z_/][\w./@+-]*", re.ASCII)
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
MAX_COMMENT = 110
WIDTH = 100


def scalar(text: str) -> str:
    """A text as one YAML scalar: plain where that is safe, else as a JSON string, which YAML reads too."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _printable(json.dumps(text, ensure_ascii=False))


def value(data: Any) -> str:
    """A JSON value on one line."""
    if isinstance(data, Mapping):
        return "{" + ", ".join(f"{scalar(str(key))}: {value(item)}" for key, item in data.items()) + "}"
    if isinstance(data, list | tuple):
        return "[" + ", ".join(map(value, data)) + "]"
    return scalar(data) if isinstance(data, str) else json.dumps(data)


def comment(text: str) -> str:
    """One line of a comment, shortened."""
    line = _printable(" ".join(text.split()))
    return f"# {line if len(line) <= MAX_COMMENT else line[: MAX_COMMENT - 3] + '...'}"


def sequence(key: str, items: Iterable[str]) -> list[str]:
    """A key with a list of texts: on one line if they fit there."""
    words = [scalar(item) for item in items]
    line = f"{key}: [{', '.join(words)}]"
    return [line] if len(line) <= WIDTH else [f"{key}:", *(f"  - {word}" for word in words)]


def mapping(key: str, items: Mapping[str, str]) -> list[str]:
    """A key with names and texts."""
    return [f"{key}:", *(f"  {scalar(name)}: {scalar(text)}" for name, text in items.items())]


def indented(lines: Iterable[str], by: int) -> list[str]:
    return [" " * by + line if line else line for line in lines]


def commented(lines: Iterable[str]) -> list[str]:
    return [f"# {line}" for line in lines]


def _printable(text: str) -> str:
    """What a terminal or a YAML reader would take for something else, as an escape that both read alike."""
    return "".join(char if char.isprintable() and char != "\ufeff" else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - YAML 1.2, 5.7: escapes
