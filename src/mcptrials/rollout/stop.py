"""Stop: the user's wish to end a run, and the trials in flight that it can cancel."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class Stop:
    """Asked for once, no new trial begins; then the trials in flight can be cancelled too."""

    def __init__(self) -> None:
        self.asked = False
        self._scopes: set[anyio.CancelScope] = set()

    @contextmanager
    def cancellable(self) -> Iterator[anyio.CancelScope]:
        """A body that `cancel` ends."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)

    def cancel(self) -> None:
        self.asked = True
        for scope in tuple(self._scopes):
            scope.cancel()
