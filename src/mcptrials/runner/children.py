"""Children: how an event loop of ours hears of the end of the processes that it started."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def waiting_without_threads() -> Iterator[None]:
    """By pidfd_open(2) instead of a thread for each process, as Python does by itself from 3.12 on."""
    if sys.platform != "linux" or sys.version_info >= (3, 12) or not _has_pidfd():
        yield
        return
    policy = asyncio.get_event_loop_policy()
    before = policy.get_child_watcher()
    policy.set_child_watcher(asyncio.PidfdChildWatcher())
    try:
        yield
    finally:
        policy.set_child_watcher(before)


def _has_pidfd() -> bool:
    with suppress(OSError, AttributeError):
        os.close(os.pidfd_open(os.getpid()))
        return True
    return False
