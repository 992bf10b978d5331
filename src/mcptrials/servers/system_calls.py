"""System calls that a confined server may not make, as a filter of seccomp(2) that `launcher` puts in force.

Landlock knows files, signals and sockets only. Without more, a server could set the limits of any process of the user
(prlimit(2)): starve the run of files and CPU, or give another's process the mark of what it started itself, so that the
run would end that process as one of the server's (see `lineage`). And it could read the user's keys (keyctl(2)).
"""

import errno
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mcptrials.lineage import MARKED_LIMIT

_OFFERED = Path("/proc/sys/kernel/seccomp/actions_avail")
"""There where the kernel knows filters."""


class _Calls(NamedTuple):
    prlimit: int
    setrlimit: int
    keys: tuple[int, int, int]
    """add_key, request_key, keyctl."""


_BY_ARCHITECTURE: Mapping[int, _Calls] = {
    0xC000003E: _Calls(302, 160, (248, 249, 250)),  # x86_64, whose x32 numbers these the same, beside a bit
    0x40000003: _Calls(340, 75, (286, 287, 288)),  # i386, which x86_64 runs too
    0xC00000B7: _Calls(261, 164, (217, 218, 219)),  # aarch64
    0x40000028: _Calls(369, 75, (309, 310, 311)),  # arm, which aarch64 runs too
}
"""By the kernel's AUDIT_ARCH numbers. On others nothing is filtered."""
_LOAD, _AND, _IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_TARGET, _RESOURCE, _NEW_LOW, _NEW_HIGH = 16, 24, 32, 36
"""Offsets in struct seccomp_data: of prlimit's arguments the process, the limit, and the pointer to its new value."""
_X32 = 0x40000000
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.EPERM


@cache
def filter_program() -> str:
    """The filter's instructions of classic BPF, in hexadecimal; empty where the kernel knows none."""
    return b"".join(_program()).hex() if _OFFERED.exists() else ""


def _program() -> Iterator[bytes]:
    blocks = [(architecture, list(_refusals(calls))) for architecture, calls in _BY_ARCHITECTURE.items()]
    for architecture, block in blocks:
        yield _step(_LOAD, _ARCHITECTURE)
        yield _step(_IF_EQUAL, architecture, no=len(block))
        yield from block
    yield _step(_RETURN, _ALLOWED)


def _refusals(calls: _Calls) -> Iterator[bytes]:
    """Ends with a verdict on every path. A limit may be asked for, and one's own be set, all but the mark."""
    yield _step(_LOAD, _NUMBER)
    yield _step(_AND, ~_X32 & 0xFFFFFFFF)
    for number in calls.keys:
        yield _step(_IF_EQUAL, number, no=1)
        yield _step(_RETURN, _REFUSED)
    yield _step(_IF_EQUAL, calls.setrlimit, no=4)
    yield _step(_LOAD, _TARGET)  # its first argument is the limit
    yield _step(_IF_EQUAL, MARKED_LIMIT, no=1)
    yield _step(_RETURN, _REFUSED)
    yield _step(_RETURN, _ALLOWED)
    yield _step(_IF_EQUAL, calls.prlimit, no=9)
    yield _step(_LOAD, _NEW_LOW)
    yield _step(_IF_EQUAL, 0, no=2)
    yield _step(_LOAD, _NEW_HIGH)
    yield _step(_IF_EQUAL, 0, yes=5)
    yield _step(_LOAD, _TARGET)
    yield _step(_IF_EQUAL, 0, no=2)
    yield _step(_LOAD, _RESOURCE)
    yield _step(_IF_EQUAL, MARKED_LIMIT, no=1)
    yield _step(_RETURN, _REFUSED)
    yield _step(_RETURN, _ALLOWED)


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """struct sock_filter, on machines of the byte order that all of the above have."""
    return code.to_bytes(2, "little") + bytes((yes, no)) + value.to_bytes(4, "little")
