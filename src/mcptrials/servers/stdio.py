"""A server as a child process that speaks over its standard input and output.

Spec 2026-07-28, basic/transports/stdio: one JSON message per line, nothing else on stdout; shutdown is closing stdin,
a wait, then force. The reader is linear in the size of a line.
"""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio
from anyio.abc import ByteReceiveStream, Process

from mcptrials.errors import ServerError
from mcptrials.frozen import Frozen
from mcptrials.presentation import ToolFilter
from mcptrials.protocols import Place, ServerExit, WireLog
from mcptrials.servers.background import background

CHUNK = 1 << 18
MAX_LINE = 64 << 20
"""Bytes of one message; a longer one ends the trial as a contract violation."""
STDERR_HEAD, STDERR_TAIL = 8 << 10, 24 << 10
EXIT_GRACE_S = 2.0
"""How long a server may take to exit after each step of the shutdown."""
_INHERITED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "SHELL",
    "USER",
    "LOGNAME",
    "SYSTEMROOT",
    "PYENV_ROOT",
)


class StdioServer(Frozen):
    """How to start a server from a command."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    tools: ToolFilter = ToolFilter()

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator["StdioChannel"]:
        """The server, running. It is closed, and its whole process group gone, when the context ends.

        Raises:
            ServerError: server_start, when the command cannot be started.
        """
        channel = StdioChannel(await self._spawn(place), place.wire(self.name))
        async with background() as tasks:
            tasks.start_soon(channel.drain_stderr)
            try:
                yield channel
            finally:
                with anyio.CancelScope(shield=True):
                    await channel.close()

    async def _spawn(self, place: Place) -> Process:
        command = [place.expand(part) for part in (self.command, *self.args)]
        cwd = place.project_dir / place.expand(self.cwd or ".")
        try:
            return await anyio.open_process(
                command, cwd=cwd, env=self._environment(place), stderr=subprocess.PIPE, start_new_session=True
            )
        except (OSError, ValueError) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise ServerError("server_start", f"server {self.name!r}: cannot start {command[0]!r}: {reason}") from exc

    def _environment(self, place: Place) -> dict[str, str]:
        """Only what the project gives, what a process needs, and a home of the trial's own.

        Caches of package runners stay the user's, since filling them anew in every trial would dominate its time.
        """
        home, real_home = place.trial_dir / ".home", Path.home()
        temporary = place.trial_dir / ".tmp"
        for folder in (home, temporary):
            folder.mkdir(exist_ok=True)
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        own = {"HOME": home, "USERPROFILE": home, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary}
        caches = {"npm_config_cache": real_home / ".npm", "UV_CACHE_DIR": real_home / ".cache" / "uv"}
        python = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8", "PYTHONUSERBASE": str(real_home / ".local")}
        places = {name: str(path) for name, path in (own | caches).items()}
        return inherited | places | python | {name: place.expand(value) for name, value in self.env.items()}


class StdioChannel:
    """Lines to and from one running process, teed to the wire log."""

    def __init__(self, process: Process, wire: WireLog) -> None:
        self._process, self._wire = process, wire
        self._buffer = bytearray()
        self._scanned = 0
        self._stderr = _CappedText()
        self._exit: ServerExit | None = None
        self._output_ended = False

    async def send(self, line: bytes) -> None:
        """Raises:
        anyio.BrokenResourceError: the server no longer reads.
        """
        self._wire.frame("out", time.monotonic(), line)
        stdin = self._process.stdin
        if stdin is None:
            raise anyio.ClosedResourceError
        await stdin.send(line + b"\n")

    async def receive(self) -> bytes:
        """The next line, without its end; what follows the last line end is a line too.

        Raises:
            EOFError: the server closed its output.
            ServerError: contract_violation, when a message is larger than `MAX_LINE`.
        """
        while (end := self._buffer.find(b"\n", self._scanned)) < 0:
            self._scanned = len(self._buffer)
            if self._scanned > MAX_LINE:
                raise ServerError("contract_violation", f"one message is larger than {MAX_LINE >> 20} MiB")
            chunk = await self._read_chunk()
            if not chunk:
                return self._last_line()
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        self._wire.frame("in", time.monotonic(), line)
        return line.removesuffix(b"\r")

    def _last_line(self) -> bytes:
        self._output_ended = True
        line = bytes(self._buffer)
        if not line:
            raise EOFError
        self._buffer.clear()
        self._scanned = 0
        self._wire.frame("in", time.monotonic(), line)
        return line

    async def _read_chunk(self) -> bytes:
        return await _read(self._process.stdout)

    async def drain_stderr(self) -> None:
        """Keeps the server's stderr flowing; runs for as long as the channel is open."""
        while chunk := await _read(self._process.stderr):
            self._stderr.add(chunk)

    def stderr_tail(self) -> str:
        return self._stderr.text()

    def exited(self) -> ServerExit | None:
        return self._exit

    async def settle(self, timeout_s: float = EXIT_GRACE_S) -> int | None:
        """The exit code if the process ends within the time; after its output ended it is about to."""
        with anyio.move_on_after(timeout_s):
            await self._process.wait()
        return self._process.returncode

    async def close(self) -> None:
        """Ends the server: close stdin, wait, TERM, wait, KILL; then whatever is left of its process group."""
        if self._exit is not None:
            return
        began = time.monotonic()
        how = await self._end()
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with anyio.move_on_after(0.2):
            await self._drain_rest()
        await self._process.aclose()
        self._wire.close()
        self._exit = ServerExit(
            exit_code=self._process.returncode,
            how=how,
            ms=(time.monotonic() - began) * 1000,
            stderr_bytes=self._stderr.size,
            stderr_tail=self._stderr.text(),
        )

    async def _end(self) -> Literal["closed", "terminated", "killed", "crashed"]:
        if self._process.returncode is None and self._output_ended:
            await self.settle(0.5)
        if self._process.returncode is not None:
            return "crashed" if self._process.returncode else "closed"
        if self._process.stdin is not None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._process.stdin.aclose()
        if await self.settle() is not None:
            return "closed"
        self._signal_group(signal.SIGTERM)
        if await self.settle() is not None:
            return "terminated"
        self._signal_group(signal.SIGKILL)
        await self._process.wait()
        return "killed"

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def _drain_rest(self) -> None:
        """Pipes are read to their end, so that no transport is left behind with data in it."""
        async with anyio.create_task_group() as tasks:
            for stream in (self._process.stdout, self._process.stderr):
                tasks.start_soon(_discard, stream)


async def _discard(stream: ByteReceiveStream | None) -> None:
    with suppress(anyio.BusyResourceError):
        while await _read(stream):
            pass


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
        gap = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        return (bytes(self._head) + gap + tail).decode("utf-8", "replace")
