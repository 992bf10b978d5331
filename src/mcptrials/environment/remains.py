"""What a trial left on the disk, looked at without trust.

Databases open read-only with their schema untrusted and bounded in time and size; files must be regular and reached
without a link.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

MAX_BYTES = 16 << 20
MAX_ROWS = 100_000
TIMEOUT_S = 30.0
"""How long a reader may take, unless it says so itself."""
SQLITE = "sqlite:///"
_COPY_BYTES = 1 << 20
_NEEDS_RECOVERY = (
    sqlite3.SQLITE_READONLY_ROLLBACK,
    sqlite3.SQLITE_READONLY_RECOVERY,
    sqlite3.SQLITE_READONLY_CANTINIT,
    sqlite3.SQLITE_CANTOPEN,
)
"""What SQLite says when it would have to write before it can read."""
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    # What R-trees prepare when they are opened; `query_only` refuses to run it.
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
}
_TELLING_PRAGMAS = (
    *("table_info", "table_xinfo", "table_list", "index_info", "index_list", "index_xinfo"),
    *("foreign_key_list", "foreign_key_check", "integrity_check", "quick_check"),
)
"""Those whose argument is no new setting."""
_ACTING_PRAGMAS = ("wal_checkpoint", "incremental_vacuum", "optimize", "shrink_memory")
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
    try:
        return _query(path, "ro", sql, bound, timeout_s)
    except sqlite3.OperationalError as exc:
        if getattr(exc, "sqlite_errorcode", None) not in _NEEDS_RECOVERY:
            raise
    with _copied(path) as copy:
        return _query(copy, "rw", sql, bound, timeout_s)


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """A database with what a killed writer left beside it, where SQLite can roll back without touching the evidence."""
    with tempfile.TemporaryDirectory(prefix="mcptrials-db-") as folder:
        for suffix in ("", "-journal", "-wal"):
            source = path.with_name(path.name + suffix)
            if os.path.lexists(source):
                _copy_regular(source, Path(folder, source.name))
        yield Path(folder, path.name)


def _copy_regular(source: Path, copy: Path) -> None:
    with (
        _opened_regular(source) as descriptor,
        copy.open("wb") as file,
        open(descriptor, "rb", closefd=False) as content,
    ):
        shutil.copyfileobj(content, file, _COPY_BYTES)


def _query(
    path: Path, mode: Literal["ro", "rw"], sql: str, bound: Mapping[str, str], timeout_s: float
) -> tuple[list[Any], list[str]]:
    deadline = time.monotonic() + timeout_s
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=timeout_s)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        # A read-only database does not keep ATTACH and VACUUM INTO from making files elsewhere.
        connection.set_authorizer(_may)
        cursor = connection.execute(sql, dict(bound))
        return bounded(cursor), [column[0] for column in cursor.description or ()]
    except sqlite3.DatabaseError as exc:
        if time.monotonic() > deadline:
            raise ReadError(f"the query did not end within {timeout_s:g} s") from exc
        if getattr(exc, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
            raise ReadError("the statement does more than read; a reader asks with SELECT") from exc
        raise
    finally:
        connection.close()


def _may(action: int, name: str | None, argument: str | None, *_: object) -> int:
    """SQLite's question whether a statement may do something (https://sqlite.org/c3ref/set_authorizer.html)."""
    if action == sqlite3.SQLITE_PRAGMA:
        pragma = (name or "").lower()
        allowed = pragma in _TELLING_PRAGMAS or (argument is None and pragma not in _ACTING_PRAGMAS)
    else:
        allowed = action in _READING
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


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
    with _opened_regular(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ReadError(f"{path.name!r} has more than {MAX_BYTES >> 20} MiB")
    return content.decode("utf-8-sig")


@contextmanager
def _opened_regular(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ReadError(f"{path.name!r} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def inode(folder: Path) -> tuple[int, int] | None:
    """What a directory is, whatever its name; None when there is none, or a link."""
    with suppress(OSError):
        found = folder.lstat()
        return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None
    return None


def refuse_other_dir(folder: Path, made: tuple[int, int] | None) -> None:
    """A server may move its trial's directory away and put another, or a link to one, in its place.

    Raises:
        ReadError: what stands there is not the directory that was made.
    """
    if made is not None and os.path.lexists(folder) and inode(folder) != made:
        raise ReadError("the trial's directory was replaced by another: nothing in it is read")


def _refuse_links(path: Path, inside: Path) -> None:
    """A link could show a file of the user's as one of the trial's."""
    if path.is_symlink():
        raise ReadError(f"{path.name!r} is a link")
    if path.is_relative_to(inside) and not path.parent.resolve().is_relative_to(inside.resolve()):
        raise ReadError(f"{path.name!r} is reached through a link out of the trial's directory")
