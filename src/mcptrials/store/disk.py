"""Durable writes: a whole file by rename, one line by a single write and fsync."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcptrials.errors import IncompleteError, UsageError


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file at once: the old content or the new, never a part (tmp + fsync + rename)."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a directory cannot be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class LineFile:
    """An append-only file whose lines are on the disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        _sync_folder(path.parent)

    def append(self, line: bytes) -> None:
        """One write, one fsync: a kill can tear the last line only."""
        written = os.write(self._descriptor, line)
        if written != len(line):
            raise OSError(28, "the disk is full: a record was written in part")
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A full or unwritable disk ends the run, with what was recorded kept."""
    try:
        yield
    except OSError as exc:
        what = f"cannot write the run: {exc.strerror or exc}"
        hint = "free space or mend the permissions, then resume the run"
        raise IncompleteError(what, where=str(folder), hint=hint) from exc


def make_folder(folder: Path, *, exist_ok: bool) -> None:
    """A folder for runs or for one run.

    Raises:
        UsageError: it exists already or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
    except FileExistsError as exc:
        raise UsageError("a run of that name exists", where=str(folder), hint="take another --name") from exc
    except OSError as exc:
        what = f"cannot make the folder: {exc.strerror or exc}"
        raise UsageError(what, where=str(folder), hint="check 'runs' in the project file") from exc
