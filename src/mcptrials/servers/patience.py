"""Patience: a time limit that counts only while our own event loop turns.

What stood still together with the loop must not be charged to a server: its answer may be waiting to be read.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

TICK_S = 0.2
_STILL_S = 0.1
"""A tick that is late by so much says that the loop stood still, and is not counted."""
_LAST_S = 0.05
"""After the last tick, for what is there to be taken."""


@contextmanager
def patience(timeout_s: float, busy: Callable[[], bool]) -> Iterator[None]:
    """Cancels its body when so many seconds have passed.

    Args:
        busy: whether something that was received is still being read.

    Raises:
        TimeoutError: it was cancelled.
    """
    with anyio.CancelScope() as scope:
        countdown = _Countdown(scope, timeout_s, busy)
        try:
            yield
        finally:
            countdown.stop()
    if scope.cancelled_caught:
        raise TimeoutError


class _Countdown:
    """Timers of the loop rather than a task, of which each call to a server would need one."""

    def __init__(self, scope: anyio.CancelScope, timeout_s: float, busy: Callable[[], bool]) -> None:
        self._scope, self._left_s, self._busy = scope, timeout_s, busy
        self._loop = asyncio.get_running_loop()
        self._wait(min(timeout_s, TICK_S))

    def stop(self) -> None:
        self._timer.cancel()

    def _wait(self, tick_s: float) -> None:
        self._tick_s, self._due_s = tick_s, time.monotonic() + tick_s
        self._timer = self._loop.call_later(tick_s, self._tick)

    def _tick(self) -> None:
        on_time = time.monotonic() - self._due_s < _STILL_S
        if self._left_s > 0:
            self._left_s -= self._tick_s if on_time else 0
            self._wait(min(self._left_s, TICK_S) if self._left_s > 0 else _LAST_S)
        elif on_time and not self._busy():
            self._scope.cancel()
        else:
            self._wait(_LAST_S)
