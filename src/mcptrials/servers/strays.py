"""Strays: processes that a server leaves behind, also in sessions of their own.

They are known by a directory that the environment of one server, and of what it started, names.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_CHUNK = 1 << 16
_ROUNDS = 3
"""A stray may start another one while it is being found."""


def kill_strays(marker: Path) -> int:
    """How many there were; 0 where the system does not show environments."""
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        found = _find(os.fsencode(marker))
        if not found - killed:
            break
        killed |= found
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    return len(killed)


def _find(marker: bytes) -> set[int]:
    names = os.listdir(_PROC) if _PROC.is_dir() else ()  # noqa: PTH208 - a tenth of the time of pathlib's
    return {int(name) for name in names if name.isdigit() and marker in _environment(name)}


def _environment(pid: str) -> bytes:
    """Empty for a process that is gone, or another user's."""
    try:
        descriptor = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(descriptor, _CHUNK), b""))
    except OSError:
        return b""
    finally:
        os.close(descriptor)
