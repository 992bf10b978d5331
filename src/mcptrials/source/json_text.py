"""JSON texts as Sources: read by `json`, since YAML readers split surrogate pairs."""

import json
import math
import re
from json.decoder import JSONDecodeError, JSONDecoder, scanstring  # type: ignore[attr-defined]
from pathlib import Path

from mcptrials.errors import UsageError
from mcptrials.source.document import MAX_DEPTH, TOO_DEEP, Keys, Source, Unquoted, characters, dotted


def json_source(path: Path, text: str, first_line: int) -> Source:
    """The one document of a JSON text that begins at `first_line` of its file.

    Raises:
        UsageError: it cannot be parsed; names `path` and the line.
    """
    try:
        value = json.loads(text, parse_float=lambda written: Unquoted(float(written), written))
        reader = _JsonLines(path, text, first_line)
        reader.walk(0, ())
    except JSONDecodeError as exc:
        where = f"{path}:{first_line + exc.lineno - 1}"
        raise UsageError(f"not valid JSON: {exc.msg} (column {exc.colno})", where=where) from exc
    except RecursionError as exc:
        raise UsageError(TOO_DEEP, where=f"{path}:{first_line}") from exc
    except ValueError as exc:
        raise UsageError(f"not valid JSON: {exc}", where=f"{path}:{first_line}") from exc
    return Source(path, value, reader.lines)


class _JsonLines:
    """Notes the line of every key and item of a JSON text that parses, and refuses what `json` lets pass."""

    _SPACE = re.compile(r"[ \t\r\n]*")

    def __init__(self, path: Path, text: str, first_line: int) -> None:
        self.path, self.text, self.line = path, text, first_line
        self.lines: dict[Keys, int] = {(): first_line}
        self.decoder = JSONDecoder()
        self.seen = 0

    def skip(self, position: int) -> int:
        match = self._SPACE.match(self.text, position)
        return match.end() if match else position

    def note(self, key: Keys, position: int) -> None:
        self.line += self.text.count("\n", self.seen, position)
        self.seen = position
        if key in self.lines:
            raise self.refused(key, f"key {key[-1]!r} stands twice", "keep one")
        if isinstance(key[-1], str):
            self.check(key[-1], key[:-1])
        self.lines[key] = self.line

    def check(self, text: str, key: Keys) -> None:
        try:
            characters(text)
        except ValueError as exc:
            raise self.refused(key, str(exc)) from exc

    def refused(self, key: Keys, what: str, hint: str | None = None) -> UsageError:
        return UsageError(what, where=f"{self.path}:{self.line}: {dotted(key)}", hint=hint)

    def walk(self, position: int, key: Keys) -> int:
        position = self.skip(position)
        opening = self.text[position]
        if opening not in "{[":
            return self.scalar(position, key)
        if len(key) > MAX_DEPTH:
            raise self.refused(key[:3], TOO_DEEP)
        position, index, closing = self.skip(position + 1), 0, "}" if opening == "{" else "]"
        while self.text[position] != closing:
            inner: Keys = (*key, index)
            start = position
            if opening == "{":
                name, position = scanstring(self.text, position + 1)
                inner = (*key, name)
                position = self.skip(position) + 1
            self.note(inner, start)
            position = self.skip(self.walk(position, inner))
            index += 1
            if self.text[position] == ",":
                position = self.skip(position + 1)
        return position + 1

    def scalar(self, position: int, key: Keys) -> int:
        value, end = self.decoder.raw_decode(self.text, position)
        if isinstance(value, float) and not math.isfinite(value):
            raise self.refused(key, f"{self.text[position:end]} is no finite number")
        if isinstance(value, str):
            self.check(value, key)
        return int(end)
