"""Headcount: how many processes a server runs with all that it started, looked at now and then.

RLIMIT_NPROC cannot bound that: it counts whatever the user runs, and root has none.
"""

from collections.abc import Callable

import anyio
from anyio import to_thread

LOOK_S = 0.5


async def watch(count: Callable[[], int], most: int, end: Callable[[], None]) -> None:
    """Calls `end` when there are more than `most`, and again as long as there are."""
    while True:
        await anyio.sleep(LOOK_S)
        if await to_thread.run_sync(count) > most:
            await to_thread.run_sync(end)
