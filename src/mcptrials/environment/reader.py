"""State readers: SQL, file and command, each one look at what a trial left behind.

What a server left is hostile until proven otherwise: databases open read-only with their schema untrusted and bounded
in time, files must be regular and reached without a link, outputs are capped.
"""

import json
import os
import re
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import anyio
from anyio import to_thread
from pydantic import Field

from mcptrials.encoding import parse_json
from mcptrials.errors import describe
from mcptrials.frozen import Items, UserData
from mcptrials.jsonpath import pick
from mcptrials.protocols import Place

MAX_BYTES = 16 << 20
MAX_ROWS = 100_000
TIMEOUT_S = 30.0
_SQLITE = "sqlite:///"
_KEY = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ReadError(Exception):
    """A reader could not read; the trial is then not scored, never failed."""


class SqlReader(UserData):
    """A query; one value, a list for one column, else a list of objects."""

    sql: str
    url: str
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)

    def names(self) -> set[str]:
        return set(re.findall(r":([A-Za-z_]\w*)", self.sql))

    async def read(self, place: Place, bound: Mapping[str, str]) -> Any:
        path = sqlite_path(place.expand(self.url))
        rows, columns = await to_thread.run_sync(_query, path, self.sql, bound, self.timeout_seconds)
        if len(columns) == 1:
            values = [row[0] for row in rows]
            return values[0] if len(values) == 1 else values
        return [dict(zip(columns, row, strict=True)) for row in rows]


class FileReader(UserData):
    """A file's text, JSON, lines, or whether it exists."""

    file: str
    as_: Literal["text", "json", "lines", "exists"] = Field(default="text", alias="as")
    path: str | None = None

    def names(self) -> set[str]:
        return set(_KEY.findall(self.file))

    async def read(self, place: Place, bound: Mapping[str, str]) -> Any:
        file = place.trial_dir / place.expand(_bind(self.file, {key: _path_part(part) for key, part in bound.items()}))
        if self.as_ == "exists":
            return await to_thread.run_sync(os.path.lexists, file)
        text = await to_thread.run_sync(_read_regular, file, place.trial_dir)
        if self.as_ == "lines":
            return text.splitlines()
        if self.as_ == "text":
            return text
        value = parse_json(text)
        return pick(value, self.path) if self.path else value


class CommandReader(UserData):
    """What a command prints, or its exit code."""

    command: Items[str] = Field(min_length=1)
    value: Literal["stdout", "exit_code", "json"] = "stdout"
    path: str | None = None
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)

    def names(self) -> set[str]:
        return {name for item in self.command for name in _KEY.findall(item)}

    async def read(self, place: Place, bound: Mapping[str, str]) -> Any:
        argv = [_bind(place.expand(item), bound) for item in self.command]
        code, output, errors = await run_command(argv, place, self.timeout_seconds)
        if self.value == "exit_code":
            return code
        if code != 0:
            raise ReadError(f"{argv[0]!r} exited with code {code}: {last_line(errors)}")
        if self.value == "stdout":
            return output.removesuffix("\n").removesuffix("\r")
        value = parse_json(output)
        return pick(value, self.path) if self.path else value


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
        raise ValueError(f"a reader has exactly one of {', '.join(KINDS)}; this one has {', '.join(value) or 'none'}")
    return KINDS[kinds[0]].model_validate(value)


async def attempt(reader: Reader, place: Place, bound: Mapping[str, str]) -> Any:
    """The value that a reader finds, as JSON.

    Raises:
        ReadError: for whatever reason it could not be read, in one line.
    """
    try:
        with anyio.fail_after(TIMEOUT_S * 2):
            return _jsonable(await reader.read(place, bound))
    except ReadError:
        raise
    except (OSError, ValueError, LookupError, RecursionError, sqlite3.Error) as exc:
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


def sqlite_path(url: str) -> Path:
    """The file of an `sqlite:///` URL.

    Raises:
        ReadError: another database.
    """
    if not url.startswith(_SQLITE):
        raise ReadError(f"database {url.partition(':')[0]!r} is not supported; use sqlite:///PATH")
    return Path(url.removeprefix(_SQLITE))


def _query(path: Path, sql: str, bound: Mapping[str, str], timeout_s: float) -> tuple[list[Any], list[str]]:
    if not path.is_file():
        raise ReadError(f"database {path.name!r} does not exist")
    deadline = time.monotonic() + timeout_s
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=timeout_s)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        cursor = connection.execute(sql, dict(bound))
        rows = cursor.fetchmany(MAX_ROWS + 1)
        if len(rows) > MAX_ROWS:
            raise ReadError(f"the query gives more than {MAX_ROWS} rows")
        return rows, [column[0] for column in cursor.description or ()]
    finally:
        connection.close()


def _read_regular(path: Path, inside: Path) -> str:
    """The text of a regular file, with no link anywhere below `inside` followed."""
    if path.is_relative_to(inside) and not path.parent.resolve().is_relative_to(inside.resolve()):
        raise ReadError(f"{path.name!r} is reached through a link out of the trial's directory")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:  # noqa: PTH123 - the descriptor is what was checked
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ReadError(f"{path.name!r} is not a regular file")
        if status.st_size > MAX_BYTES:
            raise ReadError(f"{path.name!r} has {status.st_size} bytes, more than {MAX_BYTES >> 20} MiB")
        return file.read(MAX_BYTES + 1).decode()


def _bind(text: str, bound: Mapping[str, str]) -> str:
    return _KEY.sub(lambda match: bound.get(match.group(1), match.group()), text)


def _path_part(part: str) -> str:
    if "/" in part or "\\" in part or ".." in part or "\0" in part:
        raise ReadError(f"{part!r} may not stand in a path")
    return part


async def run_command(argv: Iterable[str], place: Place, timeout_s: float) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a user's command, run in the project's directory.

    Raises:
        ReadError: it cannot be started or takes too long.
    """
    argv = list(argv)
    environment = os.environ | {"MCPTRIALS_TRIAL_DIR": str(place.trial_dir), "PYTHONUTF8": "1"}
    try:
        with anyio.fail_after(timeout_s):
            done = await anyio.run_process(
                argv, cwd=place.project_dir, env=environment, check=False, stdin=subprocess.DEVNULL
            )
    except TimeoutError:
        raise ReadError(f"{argv[0]!r} did not end within {timeout_s:g} s") from None
    except OSError as exc:
        raise ReadError(f"cannot start {argv[0]!r}: {exc.strerror or exc}") from exc
    return done.returncode, done.stdout[:MAX_BYTES].decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing on stderr"
