"""Landlock: Linux's sandbox for processes without privileges, for files and signals (kernel: userspace-api/landlock).

A ruleset is made here, in our process, and enforced by `launcher` in the child, which can never leave it again.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

MIN_ABI = 2
"""Before it no file could be renamed or linked into another directory, its own ones included."""
_OPEN, _CREATE, _ADD_RULE = 437, 444, 445
"""Numbers of the system calls, the same on all architectures since they are younger than the common table."""
_GET_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REFER, _TRUNCATE, _IOCTL_DEV = (
    1 << bit for bit in (0, 1, 2, 3, 13, 14, 15)
)
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
READ = _EXECUTE | _READ_FILE | _READ_DIR
LIST = _READ_DIR
_KNOWN = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
"""Rights by the version that brought them."""
_AT_CWD, _NO_SYMLINKS = -100, 4
"""Of openat2(2)."""
_SCOPES = {6: 0b11}
"""Abstract sockets and signals: none to what runs outside."""


Rule = tuple[Path, int]
"""Rights on a path and all beneath it."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def abi() -> int:
    """The version that the kernel speaks; 0 where it has none, or none that is switched on."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), _GET_VERSION)))


def all_rights(version: int) -> int:
    """Everything that can be granted."""
    return sum(bits for since, bits in _KNOWN.items() if since <= version)


def fewest(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules that grant the same: those of paths that are there and of which nothing above grants as much."""
    granted: dict[Path, int] = {}
    for path, rights in rules:
        with suppress(OSError, RuntimeError):  # a loop of links
            real = path.resolve(strict=True)
            granted[real] = granted.get(real, 0) | rights
    return tuple(
        (path, rights)
        for path, rights in granted.items()
        if not any(rights & ~granted.get(above, 0) == 0 for above in path.parents)
    )


def beneath(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path leads through one of the folders, wherever it ends."""
    above = Path(os.path.abspath(path)).parents  # noqa: PTH100 - without following a link
    real = {folder.resolve() for folder in folders}
    return any(each in real or each.resolve() in real for each in above) if real else False


@contextmanager
def ruleset(version: int, rules: Iterable[Rule]) -> Iterator[int]:
    """The descriptor of a ruleset that grants rights on paths and all beneath them, of those that are there.

    No link is followed: one that was not there when a path was made may be a server's, and lead anywhere.

    Raises:
        OSError: the kernel refuses it, or there is a link in a path.
    """
    handled = all_rights(version)
    scoped = sum(bits for since, bits in _SCOPES.items() if since <= version)
    attributes = _Ruleset(handled, 0, scoped)
    descriptor = _called(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), 0)
    try:
        for path, rights in rules:
            with suppress(FileNotFoundError, PermissionError, NotADirectoryError):
                _grant(descriptor, path, rights & handled)
        yield descriptor
    finally:
        os.close(descriptor)


def _grant(descriptor: int, path: Path, rights: int) -> None:
    how = _How(os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    parent = _called(_OPEN, _AT_CWD, os.fsencode(path), ctypes.byref(how), size)
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _OF_A_FILE
        if rights:
            rule = _Beneath(rights, parent)
            _called(_ADD_RULE, descriptor, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)


def _called(number: int, *arguments: object) -> int:
    result = _libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "Landlock")
    return int(result)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
