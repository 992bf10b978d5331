"""Blocking work of others in a thread of its own: one that never ends holds up neither the trials nor the exit."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

from mcptrials.environment.remains import ReadError
from mcptrials.errors import describe

T = TypeVar("T")


async def in_own_thread(function: Callable[[], T], timeout_s: float, what: str) -> T:
    """What a function returns.

    Raises:
        ReadError: it failed, or did not end in time. Then it is left behind: no thread can be ended from outside.
    """
    work = _Work(function, current_token())
    threading.Thread(target=work.run, name="mcptrials reader", daemon=True).start()
    try:
        with anyio.fail_after(timeout_s):
            await work.done.wait()
    except TimeoutError:
        raise ReadError(f"{what} did not end within {timeout_s:g} s") from None
    if isinstance(work.failure, ReadError):
        raise work.failure
    if work.failure is not None:
        raise ReadError(f"{what} failed: {describe(work.failure)}") from work.failure
    return work.results[0]


@dataclass
class _Work(Generic[T]):
    function: Callable[[], T]
    token: EventLoopToken
    done: anyio.Event = field(default_factory=anyio.Event)
    results: list[T] = field(default_factory=list)
    failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.results.append(self.function())
        except BaseException as exc:  # noqa: BLE001 - the caller raises it, in its own thread
            self.failure = exc
        with suppress(RuntimeError):  # the loop is over: nobody waits any more
            from_thread.run_sync(self.done.set, token=self.token)
