"""Snapshot: what lies in a trial's directory, SQLite databases by row, and what has changed since another one."""

import hashlib
import itertools
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path
from typing import Any

from mcptrials.encoding import canonical_hash, dump_text, parse_json
from mcptrials.environment.remains import TIMEOUT_S, ReadError, query

MAX_FILES = 20_000
MAX_BYTES = 1 << 30
MAX_CHANGES = 2_000
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")
_NO_STATE = (".tmp-*", ".home/.cache")
"""Directories that every server is given to leave in them what it likes."""
_TABLES = "select name, sql from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Content hashes of files, and rows of tables, by where they are: `notes/a.txt`, `shop.db/orders`."""

    files: Mapping[str, str]
    tables: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Each row as JSON, with how often it occurs; a table without rows counts too."""

    def changes_to(self, other: "Snapshot", pattern: str) -> list[dict[str, Any]]:
        """What one would do to get from this state to the other, within the places that a pattern names.

        Raises:
            ReadError: that is too much to be recorded.
        """
        changes = []
        for change in self._changes(other):
            if fnmatchcase(change["in"], pattern):
                changes.append(change)
            if len(changes) > MAX_CHANGES:
                raise ReadError(f"more than {MAX_CHANGES:,} files or rows have changed")
        return changes

    def _changes(self, other: "Snapshot") -> Iterator[dict[str, Any]]:
        for where in sorted({*self.files, *other.files}):
            before, after = self.files.get(where), other.files.get(where)
            if before != after:
                how = "added" if before is None else "removed" if after is None else "changed"
                yield {"in": where, "change": how} | ({"content": after[:16]} if after else {})
        for where in sorted({*self.tables, *other.tables}):
            rows, found = self.tables.get(where, Counter()), other.tables.get(where, Counter())
            for how, some in (("removed", rows - found), ("added", found - rows)):
                yield from ({"in": where, "change": how, "row": parse_json(row)} for row in sorted(some.elements()))


def take_snapshot(folder: Path) -> Snapshot:
    """Everything in a trial's directory but temporary files.

    Raises:
        ReadError: a database cannot be read, or there is too much.
        OSError: a file cannot be read.
    """
    files: dict[str, str] = {}
    tables: dict[str, Counter[str]] = {}
    size = 0
    for path in _found(folder):
        where = path.relative_to(folder).as_posix()
        status = path.lstat()
        size += status.st_size
        if size > MAX_BYTES:
            raise ReadError(f"the trial's directory holds more than {MAX_BYTES >> 20} MiB")
        if stat.S_ISREG(status.st_mode) and _is_database(path):
            files |= _add_database(path, folder, where, tables)
        elif not _belongs_to_database(path):
            files[where] = _content(path, status.st_mode)
    return Snapshot(files, tables)


def _found(folder: Path) -> list[Path]:
    """Files, links and whatever else is no directory; never through a link.

    A folder that cannot be listed is a failure: what a server put there would seem not to be.
    """
    found: list[Path] = []
    folders, count = [folder], itertools.count(1)
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if next(count) > MAX_FILES:
                    raise ReadError(f"the trial's directory holds more than {MAX_FILES:,} files")
                path = Path(entry.path)
                if not entry.is_dir(follow_symlinks=False):
                    found.append(path)
                elif not _is_no_state(path.relative_to(folder).as_posix()):
                    folders.append(path)
    return sorted(found)


def _is_no_state(where: str) -> bool:
    return any(fnmatchcase(where, pattern) for pattern in _NO_STATE)


def _content(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return canonical_hash(["link", str(path.readlink())])
    if not stat.S_ISREG(mode):
        return canonical_hash(["special", stat.S_IFMT(mode)])
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _belongs_to_database(path: Path) -> bool:
    """What SQLite keeps beside a database is a part of it."""
    owner = next((path.name.removesuffix(end) for end in _BESIDE if path.name.endswith(end)), None)
    beside = path.with_name(owner) if owner else None
    return beside is not None and beside.is_file() and not beside.is_symlink() and _is_database(beside)


def _add_database(path: Path, folder: Path, where: str, tables: dict[str, Counter[str]]) -> dict[str, str]:
    """Adds its rows; the hash of each table's definition, whose place ends in a slash and nothing."""
    listed, _ = query(path, folder, _TABLES, {}, TIMEOUT_S)
    for name, _ in listed:
        quoted = name.replace('"', '""')
        rows, columns = query(path, folder, f'select * from "{quoted}"', {}, TIMEOUT_S)  # noqa: S608 - quoted
        plain = (dict(zip(columns, map(_jsonable, row), strict=True)) for row in rows)
        tables[f"{where}/{name}"] = Counter(map(dump_text, plain))
    return {f"{where}/{name}/": canonical_hash(sql) for name, sql in listed}


def _jsonable(value: Any) -> Any:
    """Blobs and infinities as no text can be: else a text that spells one would be the same state."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return {"real": str(value)} if isinstance(value, float) and not isfinite(value) else value
