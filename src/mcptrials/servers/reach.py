"""Reach: what a server may read, as paths without those that hold answers, credentials, or another trial.

Landlock grants a folder with all beneath it and takes nothing back. So a folder that holds something hidden is granted
by its other entries, one by one, as they were when the run began.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PRIVATE = (".git", ".hg", ".svn", ".netrc", ".ssh", ".aws", ".gnupg", ".docker", ".kube")
"""Names of what is hidden wherever it is met on the way; and whatever begins with `.env`."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Files and folders with all beneath them, and folders of which only the names of entries may be read."""

    whole: tuple[Path, ...]
    names: tuple[Path, ...]


NOWHERE = Reach((), ())


def reach(folders: Iterable[Path], hidden: Sequence[Path], named: Sequence[Path] = ()) -> Reach:
    """Args:
    hidden: no part of them is granted, unless it is a file that is named.
    named: files and folders that the project names for this server, some of them perhaps hidden.
    """
    folders = [folder for folder in dict.fromkeys((*folders, *named)) if not _holds_others(folder)]
    whole = {part: None for folder in folders for part in _without(folder, hidden)}
    asked = {path: None for path in named if path.is_file()}
    partly = [folder for folder in folders if folder not in whole and folder.is_dir()]
    return Reach((*whole, *asked), tuple(each for each in partly if not _is_hidden(each, hidden)))


def _without(path: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """What covers a path but for the hidden ones."""
    if _is_hidden(path, hidden) or not path.exists():
        return
    if not path.is_dir() or not _holds_hidden(path, hidden):
        yield path
        return
    with suppress(PermissionError):
        for entry in sorted(path.iterdir()):
            if not entry.is_symlink() and not _is_private(entry.name):
                yield from _without(entry, hidden)


def _is_hidden(path: Path, hidden: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real == each or each in real.parents for each in hidden)


def _holds_hidden(folder: Path, hidden: Sequence[Path]) -> bool:
    real = folder.resolve()
    if any(real in each.parents for each in hidden):
        return True
    with suppress(OSError), os.scandir(folder) as entries:
        return any(_is_private(entry.name) for entry in entries)
    return False


def _is_private(name: str) -> bool:
    return name in PRIVATE or name.startswith(".env")


def _holds_others(folder: Path) -> bool:
    """The user's home and what homes stand in, and where everybody's temporary files are."""
    real, home = folder.resolve(), Path.home().resolve()
    return real == home or real in home.parents or real == Path(tempfile.gettempdir()).resolve()
