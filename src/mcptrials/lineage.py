"""Lineage: a process with all that it started, however far that went from it.

Sessions, process groups, parents and environments are all left behind by what makes itself a daemon. On Linux a limit
on file locks is not: it is inherited over every fork and exec, and since version 2.4.25 the system itself has no use
for it (getrlimit(2), RLIMIT_LOCKS). So each server is given a number of its own there. Besides, the environment of a
server names its directory, which helps where limits cannot be set. Elsewhere nothing is found.

Run as a program this ends all that a run has left: `python lineage.py ROOT`. It needs nothing but the standard library.
"""

import hashlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

if sys.platform == "linux":
    from resource import prlimit
else:

    def prlimit(pid: int, limit: int, limits: tuple[int, int] = (-1, -1)) -> tuple[int, int]:
        raise ProcessLookupError(pid, limit, limits)  # as of one that is gone


MARKED_LIMIT = 10
"""RLIMIT_LOCKS, which has no name in Python."""
_NO_LIMIT = -1
_PROC = Path("/proc")
_CHUNK = 1 << 16
_PID_BITS = 22
"""Of the largest process id on Linux."""
_PID_MASK = (1 << _PID_BITS) - 1
_ROUNDS = 100
"""What is being ended may start another process meanwhile; it is ended when a round finds none that is new."""
_PROBES = 3
_LOOKS = 30
"""Of which some may be for nothing: a process that waits for a disk does not end."""
_QUIET_S = 0.3
"""After which a run is looked at once more: what was about to be marked is marked by then."""


def mark(pid: int, root: Path) -> None:
    """Makes a process, just started for the run with this directory, and all that it will start recognisable."""
    with suppress(OSError, ValueError):  # it is gone, or not ours to limit
        prlimit(pid, MARKED_LIMIT, (run_mark(root) | pid, _NO_LIMIT))


def run_mark(root: Path) -> int:
    """What the marks of all processes of a run have in common, beside which each has the id of its server's process."""
    return _number(root) << _PID_BITS


def end_descent(pid: int, root: Path, own_dir: Path) -> int:
    """Ends what a marked process started; gives how many there were.

    Args:
        own_dir: a directory that the environment of that process names, and of no other.
    """
    return _end(_descends(pid, root, own_dir), since=pid)


def left_nothing(pid: int, root: Path, own_dir: Path) -> bool:
    """Whether nothing that a marked process started is left: one look, which hardly ever finds anything."""
    belongs, newest = _descends(pid, root, own_dir), _newest()
    first = pid if newest >= pid else 0
    listed = any(each >= first and belongs(each) and _runs(each) for each in _pids())
    return not listed and not any(map(belongs, range(_newest(), newest, -1)))


def _descends(pid: int, root: Path, own_dir: Path) -> Callable[[int], bool]:
    number, name = run_mark(root) | pid, os.fsencode(own_dir)

    def belongs(each: int) -> bool:
        limit = _limit(each)
        # What it started before it was marked has a later number and no mark, so that few environments have to be read.
        # One that gave itself a mark of another server of the run is found when the run ends.
        marked = limit >> _PID_BITS == number >> _PID_BITS
        return limit == number or (each > pid and not marked and name in _environment(each))

    return belongs


def end_marked(pid: int, root: Path) -> int:
    """Ends a marked process with what it started since; gives how many they were."""
    number = run_mark(root) | pid
    return _end(lambda each: _limit(each) == number)


def count_descents(root: Path) -> Counter[int]:
    """How many processes each marked one of a run is with those that it started since, by its id."""
    number, limits = _number(root), map(_limit, _pids())
    return Counter(limit & _PID_MASK for limit in limits if limit >> _PID_BITS == number)


def end_run(root: Path) -> int:
    """Ends all that was started for the run with this directory; gives how many there were."""
    number, name = _number(root), os.fsencode(root) + b"/"
    return _end(lambda each: _limit(each) >> _PID_BITS == number or name in _environment(each))


def at_work(group: int) -> bool:
    """Whether a process of a group computes, or waits for a disk, just now; never, where the system is not Linux."""
    for pid in _pids():
        with suppress(OSError):
            state, _, of = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[:3]
            if int(of) == group and state in (b"R", b"D"):
                return True
    return False


def _end(belongs: Callable[[int], bool], since: int = 0) -> int:
    """Args:
    since: the first process that may belong; numbers grow until they begin anew.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        newest = _newest()
        first = since if newest >= since else 0
        found = {pid for pid in _pids() if pid >= first and belongs(pid) and _runs(pid) and _kill(pid)}
        # What forks and goes faster than all processes can be looked at is one of those that came meanwhile.
        for _ in range(_PROBES):
            found |= {pid for pid in range(_newest(), newest, -1) if belongs(pid) and _kill(pid)}
        if not found - ended:
            break
        ended |= found
    return len(ended)


def _kill(pid: int) -> bool:
    """Whether it was another's than this process."""
    if pid == os.getpid():
        return False
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    return True


def _newest() -> int:
    """The id that was given last, as /proc/loadavg ends with it (proc(5)); 0 where that is not told."""
    try:
        return int(_read("/proc/loadavg").split()[-1])
    except (ValueError, IndexError):
        return 0


def _number(root: Path) -> int:
    """40 bits that stand for a run, whose directory has a name of its own."""
    return int.from_bytes(hashlib.sha256(os.fsencode(root)).digest()[:5], "big")


def _pids() -> list[int]:
    names = os.listdir(_PROC) if _PROC.is_dir() else ()  # noqa: PTH208 - a tenth of the time of pathlib's
    return [int(name) for name in names if name.isdigit()]


def _limit(pid: int) -> int:
    """-1 where there is none, or for a process that is gone or another user's."""
    try:
        return prlimit(pid, MARKED_LIMIT)[0]
    except OSError:
        return -1


def _environment(pid: int) -> bytes:
    """Empty for a process that is gone, or another user's."""
    return _read(f"/proc/{pid}/environ")


def _read(path: str) -> bytes:
    """Empty where nothing can be read; without pathlib, which would take most of the time of a look."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(descriptor, _CHUNK), b""))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _runs(pid: int) -> bool:
    """Whether it is more than an entry that its parent has not taken note of."""
    with suppress(OSError):
        return (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def main(root: Path) -> None:
    """At once, and again until nothing is left."""
    for _ in range(_LOOKS):
        if end_run(root):
            time.sleep(_QUIET_S)
            continue
        time.sleep(_QUIET_S)
        if not end_run(root):
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
