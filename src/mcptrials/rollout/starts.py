"""Starts: bounds how many trials are starting their servers at the same time.

A start is mostly imports. Too many at once on few cores slow each other down until a deadline passes, and the server
would be blamed for it.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from mcptrials.events import Event, PromptGiven

STARTS_PER_CORE = 4

Emit = Callable[[Event], None]


class Starts:
    """A place is taken before a trial's first server starts, and given back when the model gets its prompt."""

    def __init__(self, places: int | None = None) -> None:
        self._places = anyio.CapacityLimiter(places or STARTS_PER_CORE * _cores())

    @property
    def size(self) -> int:
        """How many."""
        return int(self._places.total_tokens)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """A place for what is started ahead of its trial, for as long as the body runs."""
        async with self._places:
            yield

    @asynccontextmanager
    async def begin(self, emit: Emit) -> AsyncIterator[Emit]:
        """Waits for a place; no limit of the trial runs yet.

        The trial's events go through what this gives to `emit`, since one of them ends the start.
        """
        trial = object()
        await self._places.acquire_on_behalf_of(trial)
        starting = True

        def end() -> None:
            nonlocal starting
            if starting:
                starting = False
                self._places.release_on_behalf_of(trial)

        def passed_on(event: Event) -> None:
            emit(event)
            if isinstance(event, PromptGiven):
                end()

        try:
            yield passed_on
        finally:
            end()


def _cores() -> int:
    """How many this process may use; all of them where the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
