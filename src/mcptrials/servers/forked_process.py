"""A process that another one forked for us: its streams, and its end as that one reports it."""

import os
import re
import signal
import socket
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.lowlevel import checkpoint

_NUMBER = re.compile(rb"-?[0-9]{1,9}\n")
_REPORT_S = 2.0
"""How long the report of a process that is gone may take."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The two ends of a process's streams: the other's are closed once they were handed over."""

    stdin: int
    stdout: int
    stderr: int
    status: socket.socket
    theirs: tuple[int, ...]

    @classmethod
    def make(cls, undo: ExitStack, handed: ExitStack) -> "Ends":
        """Args:
        undo: closes our ends.
        handed: closes theirs.
        """
        pipes: list[tuple[int, int]] = []
        for _ in range(3):
            read, write = os.pipe()
            undo.callback(os.close, read if pipes else write)
            handed.callback(os.close, write if pipes else read)
            pipes.append((read, write))
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        handed.callback(theirs.close)
        ours.setblocking(False)
        stdin, (stdout, out), (stderr, err) = pipes
        for descriptor in (stdin[1], stdout, stderr):
            os.set_blocking(descriptor, False)
        return cls(stdin[1], stdout, stderr, ours, (stdin[0], out, err, theirs.fileno()))


class ForkedProcess:
    """See `channel.Child`."""

    def __init__(self, pid: int, pidfd: int, ends: Ends) -> None:
        self.pid, self._pidfd, self._status = pid, pidfd, ends.status
        self.stdin, self.stdout, self.stderr = _Sending(ends.stdin), _Receiving(ends.stdout), _Receiving(ends.stderr)
        self.returncode: int | None = None
        self.lost = False
        """Whether it is gone and who forked it did not say how: that is gone too."""
        self._over, self._watching = anyio.Event(), anyio.CancelScope(shield=True)

    async def watch(self) -> None:
        """Notices its end, also while the trial is cancelled, as long as it is not closed."""
        with self._watching:
            await anyio.wait_readable(self._pidfd)
            code = None
            with anyio.move_on_after(_REPORT_S):
                code = await read_number(self._status)
            self.lost = code is None
            self.returncode = -signal.SIGKILL if code is None else code
            self._over.set()

    async def wait(self) -> int:
        await self._over.wait()
        return self.returncode or 0

    async def aclose(self) -> None:
        self._watching.cancel()
        for stream in (self.stdin, self.stdout, self.stderr):
            await stream.aclose()
        if self.returncode is None:
            with suppress(OSError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        for each in (self._pidfd, self._status):
            anyio.notify_closing(each)
        os.close(self._pidfd)
        self._status.close()


async def read_number(told: socket.socket) -> int | None:
    """The next line of a socket, as a number; None when it ends, or is none."""
    line = b""
    while not line.endswith(b"\n"):
        await anyio.wait_readable(told)
        try:
            byte = told.recv(1)
        except OSError:
            return None
        if not byte:
            return None
        line += byte
    return int(line) if _NUMBER.fullmatch(line) else None


async def send_all(to: socket.socket, content: bytes) -> None:
    """Raises:
    OSError: nobody reads it.
    """
    rest = memoryview(content)
    while rest:
        try:
            rest = rest[to.send(rest) :]
        except BlockingIOError:
            await anyio.wait_writable(to)


class _Descriptor:
    """One end of a pipe of ours."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def open(self) -> int:
        if self._descriptor < 0:
            raise anyio.ClosedResourceError
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            anyio.notify_closing(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


class _Receiving(ByteReceiveStream):
    def __init__(self, descriptor: int) -> None:
        self._end = _Descriptor(descriptor)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await checkpoint()
        while True:
            try:
                chunk = os.read(self._end.open(), max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._end.open())
                continue
            if not chunk:
                raise anyio.EndOfStream
            return chunk

    async def aclose(self) -> None:
        self._end.close()


class _Sending(ByteSendStream):
    def __init__(self, descriptor: int) -> None:
        self._end = _Descriptor(descriptor)

    async def send(self, item: bytes) -> None:
        await checkpoint()
        rest = memoryview(item)
        while rest:
            try:
                rest = rest[os.write(self._end.open(), rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._end.open())
            except BrokenPipeError as exc:
                raise anyio.BrokenResourceError from exc

    async def aclose(self) -> None:
        self._end.close()
