"""Durable writes: a whole file by rename, one line by a single write and fsync."""

import errno
import os
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcptrials.errors import IncompleteError


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file at once: the old content or the new, never a part (tmp + fsync + rename)."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


def write_new(path: Path, content: bytes) -> None:
    """A file that is there whole or not at all.

    Raises:
        FileExistsError: there is one of that name, which stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "nt":  # a directory cannot be opened there
        sync(folder)


class LineFile:
    """An append-only file whose lines are on the disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._turn = threading.Lock()
        self._failure: OSError | None = None
        _sync_folder(path.parent)

    def append(self, line: bytes) -> None:
        """One write, one fsync: a kill can tear the last line only, and after a failure nothing is appended to it."""
        with self._turn:
            if self._failure:
                raise self._failure
            try:
                write_all(self._descriptor, line)
            except OSError as exc:
                self._failure = exc
                raise
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """A full disk first takes a part of what is written, and says why not the rest when that is written."""
    while content:
        content = content[os.write(descriptor, content) :]


def sync(path: Path) -> None:
    """What was written to a file, by whomever, is on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A full or unwritable disk ends the run, with what was recorded kept."""
    try:
        yield
    except OSError as exc:
        what = f"cannot write the run: {exc.strerror or exc}"
        mend = "lower 'concurrency' or raise 'ulimit -n'" if exc.errno in (errno.EMFILE, errno.ENFILE) else "make room"
        hint = f"{mend}, then go on with: mcptrials run --resume {shlex.quote(os.path.relpath(folder))}"
        raise IncompleteError(what, where=str(folder), hint=hint) from exc
