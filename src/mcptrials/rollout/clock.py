"""A trial's time: one monotonic base for its events, and a limit that stands still while the trial has to wait."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import anyio


class TrialClock:
    """See `protocols.Clock`."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._scope: anyio.CancelScope | None = None
        self.waited_s = 0.0

    def now_ms(self) -> float:
        return (time.monotonic() - self._began_s) * 1000

    @contextmanager
    def limit(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """Cancels its body after so many seconds, waits not counted."""
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            self._scope = scope
            try:
                yield scope
            finally:
                self._scope = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        began_s, scope = time.monotonic(), self._scope
        deadline = scope.deadline if scope else inf
        if scope:
            scope.deadline = inf
        try:
            yield
        finally:
            waited_s = time.monotonic() - began_s
            self.waited_s += waited_s
            if scope:
                scope.deadline = deadline + waited_s
