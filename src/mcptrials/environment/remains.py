"""What a trial left on the disk, looked at without trust.

Databases open read-only with their schema untrusted and bounded in time and size; files must be regular and reached
without a link.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

MAX_BYTES = 16 << 20
MAX_ROWS = 100_000
TIMEOUT_S = 30.0
"""How long a reader may take, unless it says so itself."""
SQLITE = "sqlite:///"
_STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock."""


class ReadError(Exception):
    """A reader could not read; the trial is then not scored, never failed."""


def sqlite_path(url: str) -> Path:
    """The file of an `sqlite:///` URL.

    Raises:
        ReadError: it names none.
    """
    if not url.startswith(SQLITE):
        raise ReadError(f"{url!r} names no file; write sqlite:///PATH")
    return Path(url.removeprefix(SQLITE))


def query(
    path: Path, inside: Path, sql: str, bound: Mapping[str, str], timeout_s: float
) -> tuple[list[Any], list[str]]:
    """(rows, column names) of a query that cannot write.

    Raises:
        ReadError: no database, no answer in time, or too large an answer.
        sqlite3.Error: SQLite refuses.
    """
    _refuse_links(path, inside)
    if not path.is_file():
        raise ReadError(f"database {path.name!r} does not exist")
    deadline = time.monotonic() + timeout_s
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=timeout_s)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        cursor = connection.execute(sql, dict(bound))
        return bounded(cursor), [column[0] for column in cursor.description or ()]
    except sqlite3.OperationalError as exc:
        if time.monotonic() > deadline:
            raise ReadError(f"the query did not end within {timeout_s:g} s") from exc
        raise
    finally:
        connection.close()


def bounded(cursor: Iterable[Any]) -> list[Any]:
    """All rows of a query.

    Raises:
        ReadError: they are too many or too large.
    """
    rows, size = [], 0
    for row in cursor:
        rows.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) > MAX_ROWS or size > MAX_BYTES:
            raise ReadError(f"the query gives more than {MAX_ROWS} rows or {MAX_BYTES >> 20} MiB")
    return rows


def execute(path: Path, sql: str, timeout_s: float) -> None:
    """Statements that may write, for a reset.

    Raises:
        ReadError: they did not end in time.
        sqlite3.Error: SQLite refuses.
    """
    deadline = time.monotonic() + timeout_s
    connection = sqlite3.connect(path, timeout=timeout_s)
    try:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        connection.executescript(sql)
        connection.commit()
    except sqlite3.OperationalError as exc:
        if time.monotonic() > deadline:
            raise ReadError(f"the statements did not end within {timeout_s:g} s") from exc
        raise
    finally:
        connection.close()


def read_regular(path: Path, inside: Path) -> str:
    """The text of a regular file.

    Raises:
        ReadError: a link, a pipe, a device, or too large.
        OSError: it cannot be opened.
    """
    _refuse_links(path, inside)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ReadError(f"{path.name!r} is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise ReadError(f"{path.name!r} has more than {MAX_BYTES >> 20} MiB")
    return content.decode("utf-8-sig")


def _refuse_links(path: Path, inside: Path) -> None:
    """A link could show a file of the user's as one of the trial's."""
    if path.is_symlink():
        raise ReadError(f"{path.name!r} is a link")
    if path.is_relative_to(inside) and not path.parent.resolve().is_relative_to(inside.resolve()):
        raise ReadError(f"{path.name!r} is reached through a link out of the trial's directory")
