"""Removal of a folder in which somebody else's program did what it liked.

It may be nested deeper than a path can be long or files can be open, and may forbid its owner to list or change it, as
the folders of Go's module cache do. No link is followed.
"""

import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def remove_tree(folder: Path) -> None:
    """As much of it as this user may remove; what stays is told by its being there."""
    with suppress(OSError, RecursionError, NotImplementedError):
        _remove_plain(str(folder), None)
        return
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if sys.platform != "win32" and folder.is_dir() and not folder.is_symlink():
        with suppress(OSError):
            _empty(folder)
        with suppress(OSError):
            folder.rmdir()


def _remove_plain(name: str, parent: int | None) -> None:
    """A folder that nobody made difficult, in a third of the time: one that is empty is not opened.

    Raises:
        OSError: it is difficult after all.
    """
    here = os.open(name, _FOLDER, dir_fd=parent)
    try:
        with os.scandir(here) as entries:
            for entry in list(entries):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=here)
                elif not _removed_empty(entry.name, here):
                    _remove_plain(entry.name, here)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=parent)


def _removed_empty(name: str, parent: int) -> bool:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return False
    return True


def _empty(folder: Path) -> None:
    """Each folder in it hands its own folders up before it goes, so that none is ever deeper than one."""
    top = _opened(str(folder), None)
    try:
        while sum([_removed(top, name) for name in os.listdir(top)]):  # noqa: PTH208 - of a descriptor
            pass  # those that were handed up meanwhile
    finally:
        os.close(top)


def _removed(top: int, name: str) -> bool:
    try:
        if not _is_folder(name, top):
            os.unlink(name, dir_fd=top)
            return True
        here = _opened(name, top)
        try:
            for inner in os.listdir(here):  # noqa: PTH208 - of a descriptor
                with suppress(OSError):
                    _hand_up(inner, here, top)
        finally:
            os.close(here)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    return True


def _hand_up(name: str, here: int, top: int) -> None:
    if not _is_folder(name, here):
        os.unlink(name, dir_fd=here)
        return
    os.close(_opened(name, here))  # one that its owner may not write cannot be moved
    os.rename(name, f".{os.urandom(8).hex()}", src_dir_fd=here, dst_dir_fd=top)


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode)


def _opened(name: str, parent: int | None) -> int:
    """A folder, with all of its owner's rights on it."""
    try:
        found = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        _allow(name, parent)
        found = os.open(name, _FOLDER, dir_fd=parent)
    if os.fstat(found).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(found, stat.S_IRWXU)
    return found


def _allow(name: str, parent: int | None) -> None:
    """By its descriptor where that can be had without rights on it, so that no link in its place is followed."""
    if sys.platform != "linux":
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{found}").chmod(stat.S_IRWXU)
    finally:
        os.close(found)
