"""A bearer token that a command of the user's gives, asked for when it is needed and again when it grows old."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from mcptrials.protocols import Place

MAX_AGE_S = 300.0
"""An older token is asked for anew when a trial begins."""


@dataclass
class TokenSource:
    """One token for all trials of a server."""

    ask: Callable[[Place], Awaitable[str]]
    """Runs the command."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _token: str | None = None
    _got_at_s: float = 0.0

    async def fresh(self, place: Place) -> str:
        """For a trial that begins.

        Raises:
            HarnessError: auth, when the command gives no token.
        """
        async with self._lock:
            if self._token is None or time.monotonic() - self._got_at_s > MAX_AGE_S:
                self._token = await self._asked(place)
            return self._token

    async def instead_of(self, refused: str | None, place: Place) -> str:
        """For a request that was refused; another trial may have got a new one already.

        Raises:
            HarnessError: auth, when the command gives no token.
        """
        async with self._lock:
            if self._token is None or self._token == refused:
                self._token = await self._asked(place)
            return self._token

    async def _asked(self, place: Place) -> str:
        token = await self.ask(place)
        self._got_at_s = time.monotonic()
        return token
