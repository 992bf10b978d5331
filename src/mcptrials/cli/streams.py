"""The standard streams: a caller may have closed them, filled them up or stopped reading; no command ends by that."""

import errno
import io
import os
import sys
from typing import Any, TextIO


class Stream(io.FileIO):
    """Takes what is written; what cannot be passed on is dropped, and the first reason noted."""

    failure: OSError | None = None

    def write(self, content: Any, /) -> int:
        if self.failure is None:
            try:
                return super().write(content) or 0
            except OSError as exc:
                self.failure = exc
        return len(content)

    @property
    def lost(self) -> str | None:
        """Why something was not written, if it matters: a reader, `head` say, that has seen enough is no error.

        Nor is a terminal that has closed.
        """
        if self.failure is None or isinstance(self.failure, BrokenPipeError) or self.failure.errno == errno.EIO:
            return None
        return self.failure.strerror or str(self.failure)


def open_streams() -> tuple[Stream, Stream]:
    """Standard output and error from now on, which never fail; text that they cannot encode is escaped."""
    _fill_closed()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open for as long as the process lives
    output, sys.stdout = _open(1, sys.stdout)
    errors, sys.stderr = _open(2, sys.stderr)
    return output, errors


def _fill_closed() -> None:
    """A closed descriptor would become that of the next file; in its place stands one that gives and takes nothing."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDONLY)
            if nothing != descriptor:
                os.dup2(nothing, descriptor)
                os.close(nothing)
            os.set_inheritable(descriptor, True)


def _open(descriptor: int, before: TextIO | None) -> tuple[Stream, TextIO]:
    """A stream that was put in the place of the process's own stays."""
    raw = Stream(descriptor, "w", closefd=False)
    if before is not None and not _stands_for(before, descriptor):
        return raw, before
    encoding = before.encoding if before else "utf-8"
    return raw, io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=True
    )


def _stands_for(stream: TextIO, descriptor: int) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError):
        return False
