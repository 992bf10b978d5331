"""Patience: a time limit that counts only while our own event loop turns.

What stood still together with the loop must not be charged to a server: its answer may be waiting to be read.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from mcptrials.servers.background import background

TICK_S = 0.2
_STILL_S = 0.1
"""A tick that is late by so much says that the loop stood still, and is not counted."""
_LAST_S = 0.05
"""After the last tick, for what is there to be taken."""


@asynccontextmanager
async def patience(timeout_s: float, busy: Callable[[], bool]) -> AsyncIterator[None]:
    """Cancels its body when so many seconds have passed.

    Args:
        busy: whether something that was received is still being read.

    Raises:
        TimeoutError: it was cancelled.
    """
    with anyio.CancelScope() as scope:
        async with background() as tasks:
            tasks.start_soon(_run_out, scope, timeout_s, busy)
            yield
    if scope.cancelled_caught:
        raise TimeoutError


async def _run_out(scope: anyio.CancelScope, timeout_s: float, busy: Callable[[], bool]) -> None:
    left_s = timeout_s
    while left_s > 0:
        tick_s = min(left_s, TICK_S)
        if await _late_s(tick_s) < _STILL_S:
            left_s -= tick_s
    while await _late_s(_LAST_S) >= _STILL_S or busy():
        pass
    scope.cancel()


async def _late_s(seconds: float) -> float:
    began_s = time.monotonic()
    await anyio.sleep(seconds)
    return time.monotonic() - began_s - seconds
