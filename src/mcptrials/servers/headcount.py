"""Headcount: how many processes each server runs with all that it started, looked at now and then.

RLIMIT_NPROC cannot bound that: it counts whatever the user runs, and root has none.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

LOOK_S = 0.5


class Headcount:
    """One look for all servers of a run, in a thread of its own that lives as long as there is any."""

    def __init__(self, count: Callable[[], Mapping[int, int]]) -> None:
        """Args:
        count: how many processes run, by the process that all of them descend from.
        """
        self._count = count
        self._bounds: dict[int, tuple[int, Callable[[], object]]] = {}
        self._lock, self._looking = threading.Lock(), False

    @contextmanager
    def bounded(self, pid: int, most: int, end: Callable[[], object]) -> Iterator[None]:
        """Calls `end` when a process is more than so many with all that it started, and again as long as it is."""
        with self._lock:
            self._bounds[pid] = (most, end)
            if not self._looking:
                threading.Thread(target=self._look, name="headcount", daemon=True).start()
                self._looking = True
        try:
            yield
        finally:
            with self._lock:
                del self._bounds[pid]

    def _look(self) -> None:
        while bounds := self._after_a_while():
            with suppress(OSError):  # this machine has no more files just now: the next look will do
                counts = self._count()
                for pid, (most, end) in bounds.items():
                    if counts.get(pid, 0) > most:
                        end()

    def _after_a_while(self) -> dict[int, tuple[int, Callable[[], object]]]:
        time.sleep(LOOK_S)
        with self._lock:
            self._looking = bool(self._bounds)
            return dict(self._bounds)
