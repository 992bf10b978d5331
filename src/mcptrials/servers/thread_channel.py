"""The channel of a server object: frames in memory, to and from a thread with an event loop of its own."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from mcptrials.errors import ServerError, describe
from mcptrials.protocols import ServerExit, WireLog
from mcptrials.servers.channel import EXIT_GRACE_S, MAX_LINE, MAX_OUTPUT, too_long, too_much
from mcptrials.servers.tee import Tee


@dataclass(frozen=True)
class ServerObject:
    """The SDK's low-level server, and what must be entered around it."""

    server: Server[Any]
    lifespan: Callable[[], AbstractAsyncContextManager[Any]]


class ThreadChannel:
    """Lines to and from one server object, teed to the wire log."""

    def __init__(self, make: Callable[[], Awaitable[ServerObject]], wire: WireLog, path: str) -> None:
        self._make, self._tee, self._path = make, Tee(wire), path
        self._inbox, self._frames = anyio.create_memory_object_stream[tuple[float, bytes]](float("inf"))
        self._gone = anyio.Event()
        self._failure: ServerError | None = None
        self._exit: ServerExit | None = None
        self._guest = _Guest(self)
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """A thread that hangs must not hold up our own end either: it is a daemon."""
        threading.Thread(target=self._guest.run, name=f"server {self._path}", daemon=True).start()

    async def made(self) -> ServerObject:
        return await self._make()

    def heard(self, line: bytes) -> None:
        """Called in the server's thread with each of its frames."""
        self._tell(self._take, line)

    def ended(self, failure: ServerError | None) -> None:
        """Called in the server's thread at its end."""
        self._tell(self._end, failure)

    def crash(self, exc: BaseException) -> ServerError:
        """What ended the server, which may be a breach that was found on the way."""
        while isinstance(exc, BaseExceptionGroup):
            exc = exc.exceptions[0]
        return exc if isinstance(exc, ServerError) else ServerError("crash", f"{self._path}: {describe(exc)}")

    def _tell(self, what: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # the run may be over while a thread that was left behind still speaks
            self._loop.call_soon_threadsafe(what, *args)

    def _take(self, line: bytes) -> None:
        if self._exit is None:
            self._inbox.send_nowait((time.monotonic(), line))

    def _end(self, failure: ServerError | None) -> None:
        if self._gone.is_set():
            return
        self._failure = failure
        self._inbox.close()
        self._gone.set()

    async def send(self, line: bytes) -> None:
        """One frame; a server that is gone is told of where its answer is awaited."""
        self._tee.sent(line)
        self._guest.give(line)

    async def receive(self) -> bytes:
        """The next frame.

        Raises:
            EOFError: the server ended.
            ServerError: crash, when it raised an error; contract_violation, when it said more than a channel carries.
        """
        await self._tee.catch_up()
        try:
            at_s, line = await self._frames.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise (self._failure or EOFError()) from None
        self._tee.heard(line, at_s)
        return line

    async def settle(self) -> int | None:
        return None

    def exited(self) -> ServerExit | None:
        return self._exit

    def stderr_tail(self) -> str | None:
        return None

    async def close(self) -> None:
        """Ends the server: its input ends, then it is cancelled; a thread that still hangs is left behind."""
        if self._exit is not None:
            return
        began = time.monotonic()
        how = await self._closed()
        self._exit = ServerExit(
            exit_code=None, how=how, ms=(time.monotonic() - began) * 1000, stderr_bytes=0, stderr_tail=""
        )
        self._inbox.close()
        with suppress(EOFError, ServerError):
            while True:  # what it said that nobody waited for
                await self.receive()
        self._frames.close()

    async def _closed(self) -> Literal["closed", "terminated", "abandoned", "crashed"]:
        if self._gone.is_set():
            return "crashed" if self._failure else "closed"
        self._guest.give(None)
        if await self._is_gone():
            return "closed"
        self._guest.cancel()
        return "terminated" if await self._is_gone() else "abandoned"

    async def _is_gone(self) -> bool:
        with anyio.move_on_after(EXIT_GRACE_S):
            await self._gone.wait()
        return self._gone.is_set()


class _Guest:
    """The server's side, in its own thread."""

    def __init__(self, channel: ThreadChannel) -> None:
        self._channel = channel
        self._early: list[bytes | None] = []
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[bytes | None] | None = None
        self._scope: anyio.CancelScope | None = None

    def give(self, line: bytes | None) -> None:
        """A frame for the server; None is the end of its input."""
        with self._lock:
            if self._loop is None or self._queue is None:
                self._early.append(line)
                return
        self._call(self._queue.put_nowait, line)

    def cancel(self) -> None:
        if self._scope:
            self._call(self._scope.cancel)

    def _call(self, what: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # its loop may just have ended, which is told by itself
            if self._loop:
                self._loop.call_soon_threadsafe(what, *args)

    def run(self) -> None:
        """The server's end is told before the loop is closed, which waits for threads that it may still have."""
        try:
            with asyncio.Runner() as runner:
                self._channel.ended(self._failure(runner))
        finally:  # told already, unless there could be no loop
            self._channel.ended(self._channel.crash(OSError("it has no event loop")))

    def _failure(self, runner: asyncio.Runner) -> ServerError | None:
        try:
            runner.run(self._serve())
        except BaseException as exc:  # noqa: BLE001 - whatever ends the server, SystemExit too, is its end
            runner.get_loop().set_exception_handler(_unheard)  # it is told already
            return self._channel.crash(exc)
        return None

    async def _serve(self) -> None:
        with anyio.CancelScope() as self._scope:
            with self._lock:
                self._loop, self._queue = asyncio.get_running_loop(), asyncio.Queue()
                for line in self._early:
                    self._queue.put_nowait(line)
            thing = await self._channel.made()
            async with (
                thing.lifespan(),
                create_client_server_memory_streams() as (ours, theirs),
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(self._pass_in, self._queue, ours[1])
                tasks.start_soon(self._pass_out, ours[0])
                await thing.server.run(*theirs, thing.server.create_initialization_options())
                tasks.cancel_scope.cancel()

    async def _pass_in(self, queue: "asyncio.Queue[bytes | None]", write: Any) -> None:
        while (line := await queue.get()) is not None:
            await write.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
        await write.aclose()

    async def _pass_out(self, read: Any) -> None:
        said = 0
        async for item in read:
            if isinstance(item, SessionMessage):
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                said += len(line)
                if len(line) > MAX_LINE:
                    raise too_long()
                if said > MAX_OUTPUT:
                    raise too_much("in all its messages")
                self._channel.heard(line)


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the SDK would write as thousands of lines of a traceback."""
