"""The launcher: takes rights and limits from itself, then becomes the server. A child process's own program.

`launcher.py RULESET FILTER MARK LIMITS LC_CTYPE COMMAND ARG...`: the descriptor of a Landlock ruleset or -1; a filter
of system calls in hexadecimal, or nothing; what marks the processes of the run; `NUMBER:SOFT:HARD,...` of setrlimit(2),
-1 for none; what the variable had been before Python set it; the command. It imports as little as it can, since every
start of every server pays for it.
"""

import os
import sys
from _signal import SIG_DFL, SIGPIPE, SIGXFSZ, signal  # type: ignore[import-not-found]  # a tenth of signal's time
from ctypes import CDLL, Structure, byref, c_char_p, c_ushort, get_errno
from resource import getrlimit, setrlimit

_RESTRICT_SELF = 446
_SET_NO_NEW_PRIVS = 38
_SET_SECCOMP, _BY_FILTER = 22, 2
_RLIMIT_LOCKS = 10
_DROP_BOUNDING, _AMBIENT, _CLEAR_ALL = 24, 47, 4
_LAST_CAPABILITY = 63
_KEPT = (0, 1, 3, 4, 5, 6, 7, 8, 10)
"""Of root's: to own, reach and signal what is there, other users, low ports (capabilities(7)). Those that are gone read
other processes' environments whatever Landlock says (CAP_PERFMON), and raise limits (CAP_SYS_RESOURCE)."""
_CANNOT_START = 127


class _Filter(Structure):
    _fields_ = [("length", c_ushort), ("steps", c_char_p)]


def restrict(ruleset: int, filter_: bytes) -> None:
    """From here on this process, and all that it starts, has the ruleset's rights only, and can gain none."""
    libc = CDLL(None, use_errno=True)
    libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in _KEPT:
            libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)  # fails for who has none, and beyond the last
    if ruleset < 0:
        return
    if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(_RESTRICT_SELF, ruleset, 0):
        raise OSError(get_errno(), os.strerror(get_errno()), "Landlock")
    os.close(ruleset)
    program = _Filter(len(filter_) // 8, filter_)
    if filter_ and libc.prctl(_SET_SECCOMP, _BY_FILTER, byref(program), 0, 0):
        raise OSError(get_errno(), os.strerror(get_errno()), "seccomp")


def mark_self(mark: int) -> None:
    """As `lineage.mark` does from outside, but before anything can be started."""
    try:  # noqa: SIM105 - contextlib takes long to be imported
        setrlimit(_RLIMIT_LOCKS, (mark | os.getpid(), -1))
    except (OSError, ValueError):
        pass  # this machine does not let us; then an environment has to do


def limit(number: int, soft: int, hard: int) -> None:
    """Never above what is allowed already."""
    allowed = getrlimit(number)[1]
    if allowed != -1:
        soft, hard = (allowed if each == -1 else min(each, allowed) for each in (soft, hard))
    setrlimit(number, (soft, hard))


def main(ruleset: str, filter_: str, mark: str, limits: str, lc_ctype: str, *command: str) -> None:
    if sys.platform == "linux":
        mark_self(int(mark))
    for each in filter(None, limits.split(",")):
        limit(*map(int, each.split(":")))
    for number in (SIGPIPE, SIGXFSZ):  # Python ignores them, and who ignores a signal has it ignored in all successors
        signal(number, SIG_DFL)
    os.environ.pop("LC_CTYPE", None)
    if lc_ctype:
        os.environ["LC_CTYPE"] = lc_ctype
    if ruleset != "-1" or (sys.platform == "linux" and os.geteuid() == 0):
        restrict(int(ruleset), bytes.fromhex(filter_))
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as exc:
        sys.stderr.write(f"cannot start {sys.argv[6]!r}: {exc}\n")
        sys.exit(_CANNOT_START)
