"""The channel of a server as a child process.

Spec 2026-07-28, basic/transports/stdio: one JSON message per line, nothing else on stdout; shutdown is closing stdin,
a wait, then force. The reader is linear in the size of a line.
"""

import os
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Protocol

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream

from mcptrials import excerpt, lineage
from mcptrials.errors import ServerError
from mcptrials.protocols import ServerExit, WireLog
from mcptrials.servers.background import together
from mcptrials.servers.tee import Tee

CHUNK = 1 << 18
MAX_LINE = 64 << 20
"""Bytes of one message; a longer one ends the trial as a contract violation."""
MAX_OUTPUT = 512 << 20
"""Bytes of all messages; a server that writes without end ends the trial likewise."""
STDERR_HEAD, STDERR_TAIL = 8 << 10, 24 << 10
EXIT_GRACE_S = 2.0
"""How long a server may take to exit after each step of the shutdown."""
_BUSY_GRACE_S = 10.0
"""How long in all while it is at work: beside others that start, an exit takes longer through no fault of its own."""
_LOOK_S = 0.5
_SETTLE_S = 0.5
"""How long a server whose output ended may take to be gone."""
_REST_S = 0.2
"""How long the output of a server that is gone is read to its end; a process it left behind may hold it open."""


def too_long() -> ServerError:
    return ServerError("contract_violation", f"one message is larger than {MAX_LINE >> 20} MiB")


def too_much(where: str) -> ServerError:
    return ServerError("contract_violation", f"the server wrote more than {MAX_OUTPUT >> 20} MiB {where}")


class Child(Protocol):
    """What a channel needs of a process, which leads a group of its own."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    @property
    def stdin(self) -> ByteSendStream | None: ...

    @property
    def stdout(self) -> ByteReceiveStream | None: ...

    @property
    def stderr(self) -> ByteReceiveStream | None: ...

    async def wait(self) -> int: ...

    async def aclose(self) -> None: ...


class StdioChannel:
    """Lines to and from one running process, teed to the wire log."""

    def __init__(
        self,
        process: Child,
        wire: WireLog,
        end_descent: Callable[[], int],
        limit: Callable[[int | None, str], str | None] = lambda *_: None,
        left_nothing: Callable[[], bool] = lambda: False,
    ) -> None:
        """Args:
        end_descent: ends what the process left behind, and gives how many that were.
        limit: gives which limit a process ended of, by its exit code and stderr.
        left_nothing: tells in a moment that there is nothing for `end_descent` to do.
        """
        self._process, self._tee, self._end_descent, self._limit = process, Tee(wire), end_descent, limit
        self._left_nothing = left_nothing
        self._buffer = bytearray()
        self._scanned = self._received = 0
        self._stderr = _CappedText()
        self._stdout_over, self._stderr_over = anyio.Event(), anyio.Event()
        self._gone, self._reading = False, anyio.CancelScope()
        self._draining = anyio.CancelScope(shield=True)
        self._exit: ServerExit | None = None

    async def send(self, line: bytes) -> None:
        """Raises:
        anyio.BrokenResourceError: the server no longer reads.
        """
        self._tee.sent(line)
        stdin = self._process.stdin
        if stdin is None:
            raise anyio.ClosedResourceError
        try:
            await stdin.send(line + b"\n")
        except OSError as exc:
            raise anyio.BrokenResourceError from exc

    async def receive(self) -> bytes:
        """The next line, without its end; what follows the last line end is a line too.

        Raises:
            EOFError: the server closed its output.
            ServerError: contract_violation, when a message or the whole output is larger than the bounds above.
        """
        await self._tee.catch_up()
        while (end := self._buffer.find(b"\n", self._scanned)) < 0:
            self._scanned = len(self._buffer)
            if self._scanned > MAX_LINE:
                raise too_long()
            chunk = await self._read_chunk()
            if not chunk:
                return self._last_line()
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        self._tee.heard(line)
        return line.removesuffix(b"\r")

    def _last_line(self) -> bytes:
        self._stdout_over.set()
        line = bytes(self._buffer)
        if not line:
            raise EOFError
        self._buffer.clear()
        self._scanned = 0
        self._tee.heard(line)
        return line

    async def _read_chunk(self) -> bytes:
        chunk = await self._read_while_it_lives()
        self._received += len(chunk)
        if self._received > MAX_OUTPUT:
            raise too_much("to its stdout")
        return chunk

    async def _read_while_it_lives(self) -> bytes:
        if not self._gone:
            with anyio.CancelScope() as self._reading:
                return await _read(self._process.stdout)
        with anyio.move_on_after(_REST_S):
            return await _read(self._process.stdout)
        return b""

    async def notice_end(self) -> None:
        """A server that is gone says no more, though what it started may hold its output open.

        One that went away well before its first word only started the one that serves.
        """
        await self._process.wait()
        if self._received or self._process.returncode:
            self._gone = True
            self._reading.cancel()

    async def drain_stderr(self) -> None:
        """Keeps the server's stderr flowing for as long as the channel is open, also while the trial is cancelled."""
        with self._draining:
            while chunk := await _read(self._process.stderr):
                self._stderr.add(chunk)
        self._stderr_over.set()

    def stderr_tail(self) -> str:
        return self._stderr.text()

    @property
    def gone(self) -> bool:
        """Whether the process has ended, or at least its output, without being asked to."""
        return self._process.returncode is not None or self._stdout_over.is_set()

    def exited(self) -> ServerExit | None:
        return self._exit

    async def settle(self) -> int | None:
        code = await self._exit_code(_SETTLE_S)
        if code is not None:
            with anyio.move_on_after(_REST_S):
                await self._stderr_over.wait()
        return code

    async def _exit_code(self, timeout_s: float) -> int | None:
        """The exit code, if the process ends within the time."""
        with anyio.move_on_after(timeout_s):
            await self._process.wait()
        return self._process.returncode

    async def close(self) -> None:
        """Ends the server: close stdin, wait, TERM, wait, KILL; then whatever it left behind."""
        if self._exit is not None:
            return
        began = time.monotonic()
        try:
            how, left = await self._end_and_read_rest()
        except BaseException:
            self._end_descent()
            self._signal_group(signal.SIGKILL)
            raise
        finally:
            if not self._stderr_over.is_set():
                self._draining.cancel()
            await self._process.aclose()
            await self._tee.catch_up()
        self._exit = ServerExit(
            exit_code=self._process.returncode,
            how=how,
            ms=(time.monotonic() - began) * 1000,
            stderr_bytes=self._stderr.size,
            stderr_tail=self._stderr.text(),
            left_processes=left,
            limit=self._limit(self._process.returncode, self._stderr.text()) if how == "crashed" else None,
        )

    async def _end_and_read_rest(self) -> tuple[Literal["closed", "terminated", "killed", "crashed"], int]:
        """What the server says while it ends is logged, and taken from it: one that cannot write cannot exit."""
        async with together() as tasks:
            tasks.start_soon(self._read_rest)
            how = await self._end()
            # A thread for that look would fight for the interpreter at each of its system calls.
            left = 0 if self._left_nothing() else await to_thread.run_sync(self._end_descent)
            self._signal_group(signal.SIGKILL)
            with anyio.move_on_after(_REST_S) as rest:
                await self._stdout_over.wait()
                await self._stderr_over.wait()
            if rest.cancelled_caught:
                tasks.cancel_scope.cancel()
        return how, left

    async def _read_rest(self) -> None:
        with suppress(EOFError, ServerError):
            while True:
                await self.receive()
        while await _read(self._process.stdout):
            pass  # over the bounds: nothing is kept any more
        self._stdout_over.set()

    async def _end(self) -> Literal["closed", "terminated", "killed", "crashed"]:
        if self._stdout_over.is_set():
            await self._exit_code(_SETTLE_S)
        if self._process.returncode is not None:
            return "crashed" if self._process.returncode else "closed"
        if self._process.stdin is not None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._process.stdin.aclose()
        if await self._exit_code(EXIT_GRACE_S) is not None or await self._exits_slowly():
            return "closed"
        self._signal_group(signal.SIGTERM)
        if await self._exit_code(EXIT_GRACE_S) is not None:
            return "terminated"
        self._signal_group(signal.SIGKILL)
        await self._process.wait()
        return "killed"

    async def _exits_slowly(self) -> bool:
        with anyio.move_on_after(_BUSY_GRACE_S - EXIT_GRACE_S):
            while await to_thread.run_sync(lineage.at_work, self._process.pid):
                if await self._exit_code(_LOOK_S) is not None:
                    return True
        return self._process.returncode is not None

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)


async def _read(stream: ByteReceiveStream | None) -> bytes:
    if stream is None:
        return b""
    try:
        return await stream.receive(CHUNK)
    except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return b""


class _CappedText:
    """The beginning and the end of a stream, however long it is."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        room = STDERR_HEAD - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._tail_size += len(chunk)
        while self._tail and self._tail_size - len(self._tail[0]) >= STDERR_TAIL:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        tail = b"".join(self._tail)[-STDERR_TAIL:]
        left_out = self.size - len(self._head) - len(tail)
        return excerpt.without_middle(bytes(self._head), tail, left_out)
