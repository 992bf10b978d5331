"""A group of background tasks whose body's own error comes out bare, not wrapped in a group."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """Tasks that are cancelled when the body ends."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as exc:  # noqa: BLE001 - raised again below, outside the group that would wrap it
            failure = exc
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
