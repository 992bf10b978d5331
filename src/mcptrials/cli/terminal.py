"""A terminal that may close while a command writes to it."""

import errno
import io
from typing import Any, TextIO


class _Terminal(io.FileIO):
    """What is written after it closed goes nowhere: the work that is told of goes on to its end."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content) or 0
        except OSError as exc:
            if exc.errno != errno.EIO:
                raise
            return len(content)


def outlast(stream: TextIO) -> TextIO:
    """The stream; if it is a terminal's, one whose closing is no error."""
    if not (isinstance(stream, io.TextIOWrapper) and stream.isatty()):
        return stream
    raw = _Terminal(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, line_buffering=True)
