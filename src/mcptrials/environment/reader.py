"""State readers: SQL, file and command, each one look at what a trial left behind."""

import io
import json
import os
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from anyio import to_thread
from pydantic import Field, ValidationInfo, field_validator

from mcptrials.encoding import parse_foreign
from mcptrials.environment.command import last_line, run_command
from mcptrials.environment.remains import ReadError, query, read_regular, refuse_other_dir, sqlite_path
from mcptrials.errors import describe
from mcptrials.frozen import Items, UserData
from mcptrials.jsonpath import parse_path, pick
from mcptrials.protocols import Place

__all__ = [
    "CommandReader",
    "FileReader",
    "ReadError",
    "Reader",
    "SqlReader",
    "attempt",
    "last_line",
    "parse_reader",
    "run_command",
]

TIMEOUT_S = 30.0
_KEY = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PARAMETER = re.compile(r":([A-Za-z_]\w*)")
_NO_PARAMETERS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Literals and comments of SQL."""


def _check_path(path: str | None, info: ValidationInfo) -> str | None:
    """A path is one into JSON, and it parses."""
    if path is not None:
        parse_path(path)
        if "json" not in (info.data.get("as_"), info.data.get("value")):
            raise ValueError("'path' leads into JSON only")
    return path


class SqlReader(UserData):
    """A query; one value, a list for one column, else a list of objects."""

    sql: str = Field(min_length=1)
    url: str
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)

    def names(self) -> set[str]:
        return set(_PARAMETER.findall(_NO_PARAMETERS.sub("", self.sql)))

    def database(self, place: Place) -> Path:
        return place.trial_dir / sqlite_path(place.expand(self.url))

    async def read(self, place: Place, bound: Mapping[str, str]) -> Any:
        path, inside = self.database(place), place.trial_dir
        rows, columns = await to_thread.run_sync(query, path, inside, self.sql, bound, self.timeout_seconds)
        if len(columns) == 1:
            values = [row[0] for row in rows]
            return values[0] if len(values) == 1 else values
        if len(set(columns)) < len(columns):
            raise ReadError(f"two columns have one name: {', '.join(columns)}; rename one with AS")
        return [dict(zip(columns, row, strict=True)) for row in rows]


class FileReader(UserData):
    """A file's text, JSON, lines, or whether it exists. A file that is not there is null: that is a state too."""

    file: str
    as_: Literal["text", "json", "lines", "exists"] = Field(default="text", alias="as")
    path: str | None = None

    def names(self) -> set[str]:
        return set(_KEY.findall(self.file))

    _path_parses = field_validator("path")(_check_path)

    async def read(self, place: Place, bound: Mapping[str, str]) -> Any:
        parts = {key: _path_part(part) for key, part in bound.items() if key in self.names()}
        file = place.trial_dir / _bind(place.expand(self.file), parts)
        if self.as_ == "exists":
            return await to_thread.run_sync(os.path.lexists, file)
        try:
            text = await to_thread.run_sync(read_regular, file, place.trial_dir)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if self.as_ == "lines":
            return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]
        return text if self.as_ == "text" else _json(text, self.path)


class CommandReader(UserData):
    """What a command prints, or its exit code."""

    command: Items[str] = Field(min_length=1)
    value: Literal["stdout", "exit_code", "json"] = "stdout"
    path: str | None = None
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)

    def names(self) -> set[str]:
        return {name for item in self.command for name in _KEY.findall(item)}

    _path_parses = field_validator("path")(_check_path)

    async def read(self, place: Place, bound: Mapping[str, str]) -> Any:
        argv = [_bind(place.expand(item), bound) for item in self.command]
        code, output, errors = await run_command(argv, place, self.timeout_seconds)
        if self.value == "exit_code":
            return code
        if code != 0:
            raise ReadError(f"{argv[0]!r} exited with code {code}: {last_line(errors)}")
        if self.value == "stdout":
            return output.removesuffix("\n").removesuffix("\r")
        return _json(output, self.path)


Reader = SqlReader | FileReader | CommandReader
KINDS: Mapping[str, type[Reader]] = {"sql": SqlReader, "file": FileReader, "command": CommandReader}


def parse_reader(value: Any) -> Reader:
    """The reader that a mapping with exactly one of the keys `sql`, `file`, `command` describes.

    Raises:
        ValueError: none or several kinds, or settings that do not fit the kind.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"a reader is a mapping with one of {', '.join(KINDS)}")  # noqa: TRY004 - pydantic's contract
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        raise ValueError(f"a reader has exactly one of {', '.join(KINDS)}; this one has {_names(value)}")
    return KINDS[kinds[0]].model_validate(value)


def _names(value: Mapping[str, Any]) -> str:
    return ", ".join(name if name.isidentifier() else repr(name) for name in value) or "none"


async def attempt(reader: Reader, place: Place, bound: Mapping[str, str]) -> Any:
    """The value that a reader finds, as JSON.

    Raises:
        ReadError: for whatever reason it could not be read, in one line.
    """
    try:
        refuse_other_dir(place.trial_dir, place.inode)
        return _jsonable(await reader.read(place, bound))
    except ReadError:
        raise
    except (OSError, ValueError, LookupError, RuntimeError, sqlite3.Error, sqlite3.Warning) as exc:
        raise ReadError(describe(exc)) from exc


def _jsonable(value: Any) -> Any:
    """SQLite's blobs as hex; the rest is JSON already."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    json.dumps(value, allow_nan=False)
    return value


def _json(text: str, path: str | None) -> Any:
    """The value of a JSON text, or what stands at `path` in it; nothing there is null."""
    value = parse_foreign(text)
    try:
        return pick(value, path) if path else value
    except LookupError:
        return None


def _bind(text: str, bound: Mapping[str, str]) -> str:
    return _KEY.sub(lambda match: bound.get(match.group(1), match.group()), text)


def _path_part(part: str) -> str:
    if "/" in part or "\\" in part or ".." in part or "\0" in part:
        raise ReadError(f"{part!r} may not stand in a path")
    return part
