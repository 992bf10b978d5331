"""Watchdog: a tiny process that ends what a run started if the run itself is killed and cannot."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcptrials import lineage

_PROGRAM = """trap '' HUP INT QUIT TERM TSTP
read -r word && exit 0
exec "$@"
"""
"""Waits for a word, or for the end of its input, which comes however the run's process ends. A shell takes a tenth of
the memory of an interpreter, which begins only when it is needed."""
_END_S = 5.0


@contextmanager
def watched(root: Path) -> Iterator[None]:
    """As long as the body runs, all that it marks with this directory ends with this process, also when that is killed.

    Only on Linux, where a process can be told from a stranger's, and with a shell. Elsewhere a server that is left
    alone gets the end of its input, on which it should end by itself.
    """
    process = _started(root) if sys.platform == "linux" else None
    try:
        yield
    finally:
        if process:
            _dismiss(process)


def _started(root: Path) -> "subprocess.Popen[bytes] | None":
    ending = [sys.executable, "-I", "-S", lineage.__file__, str(root)]
    with suppress(OSError):
        return subprocess.Popen(
            ["/bin/sh", "-c", _PROGRAM, "mcptrials-watchdog", *ending],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
    return None


def _dismiss(process: "subprocess.Popen[bytes]") -> None:
    """Nothing is left to be ended: it goes without looking."""
    with suppress(BrokenPipeError, subprocess.TimeoutExpired):
        process.communicate(b"done\n", _END_S)
    process.kill()
    process.wait()
