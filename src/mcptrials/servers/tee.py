"""Tee: the wire log of one channel, where long frames are written by a worker thread and not in the event loop."""

import time

import anyio
from anyio import to_thread

from mcptrials.encoding import LONG
from mcptrials.protocols import WireLog


class Tee:
    """What goes out and comes in: `heard` and `catch_up` for one reader at a time, `heard_by_many` for any number."""

    def __init__(self, wire: WireLog) -> None:
        self._wire = wire
        self._unlogged: tuple[float, bytes] | None = None

    def sent(self, line: bytes) -> None:
        self._wire.frame("out", time.monotonic(), line)

    def heard(self, line: bytes, at_s: float | None = None) -> None:
        """A long line is logged when the next one is asked for: whoever waits for it gets it first."""
        at_s = time.monotonic() if at_s is None else at_s
        if len(line) > LONG:
            self._unlogged = (at_s, line)
        else:
            self._wire.frame("in", at_s, line)

    async def heard_by_many(self, line: bytes, at_s: float) -> None:
        """Where several streams are read at a time, none of which waits for another."""
        if len(line) <= LONG:
            self._wire.frame("in", at_s, line)
            return
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._wire.frame, "in", at_s, line)

    async def catch_up(self) -> None:
        """Writes what was put off; also at the end of the channel."""
        if self._unlogged:
            (at_s, line), self._unlogged = self._unlogged, None
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._wire.frame, "in", at_s, line)
