"""Spare: a server started, and where its host allows it negotiated with, before the trial that will use it."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

import anyio

from mcptrials.errors import HarnessError, TrialError, boundary
from mcptrials.protocols import OpenSession, Place, Server, ServerChannel, ServerSession, SessionHooks, WireLog
from mcptrials.servers.channel import StdioChannel

MAX_WAITING = 8 << 20
"""Bytes of frames that are kept for the wire log of a trial to come; who says more is not kept ahead."""


class Spare:
    """See `protocols.Server`: what is opened runs already, and one trial only may open it.

    The task that runs `live` owns process and session: whoever enters a cancel scope has to leave it too.
    """

    def __init__(self, server: Server, negotiate: OpenSession | None) -> None:
        """Args:
        negotiate: None when the host of the trial does that by itself.
        """
        self.name = server.name
        self._server, self._negotiate = server, negotiate
        self._heard = _Heard()
        self._channel: ServerChannel | None = None
        self._session: ServerSession | None = None
        self._failure: TrialError | None = None
        self._began = False
        self._user, self._told = anyio.CancelScope(), False
        self._hung_up, self._session_over = anyio.Event(), anyio.Event()
        self._left, self._over = anyio.Event(), anyio.Event()

    async def live(self, place: Place, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Starts the server, keeps it until its trial has left it, and ends it; a fault is the trial's to hear of."""
        try:
            with boundary(HarnessError, "bug", f"the spare of server {self.name!r} failed"):
                async with self._server.open(place) as self._channel:
                    async with self._negotiated(self._channel):
                        self._began = True
                        task_status.started()
                        await self._hung_up.wait()
                    self._session_over.set()
                    await self._left.wait()
        except TrialError as failure:
            self._failure = failure
            if self._began:
                self._user.cancel()
        finally:
            self._session_over.set()
            self._over.set()
        if not self._began:
            task_status.started()

    @asynccontextmanager
    async def _negotiated(self, channel: ServerChannel) -> AsyncIterator[None]:
        if self._negotiate is None:
            self._hung_up.set()
            yield
            return
        async with self._negotiate(self.name, channel, self._heard.hooks()) as self._session:
            yield

    @property
    def gone(self) -> bool:
        """Whether the server, once it had started, ended by itself while it was waiting."""
        return self._began and (self._failure is not None or self._channel_gone())

    def _channel_gone(self) -> bool:
        return isinstance(self._channel, StdioChannel) and self._channel.gone

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator[ServerChannel]:
        """The server's channel. When the context ends the server has been closed.

        Raises:
            TrialError: what its start, or what went on behind its trial, came to.
        """
        del place  # it was started there
        if self._channel is None:
            raise self._failure or HarnessError("bug", f"the spare of server {self.name!r} was never started")
        try:
            yield self._channel
        finally:
            self._hung_up.set()
            self._left.set()
            with anyio.CancelScope(shield=True):
                await self._over.wait()
        self._tell_failure()

    @asynccontextmanager
    async def session(self, hooks: SessionHooks, anew: OpenSession) -> AsyncIterator[ServerSession]:
        """The session that was negotiated ahead; whoever comes back later negotiates `anew`.

        Raises:
            TrialError: what the negotiation came to.
        """
        self._tell_failure()
        session, self._session = self._session, None
        if session is None:
            async with anew(self.name, self._open_channel(), hooks) as session:
                yield session
            return
        self._heard.tell(hooks)
        try:
            with self._user:
                yield session
        finally:
            self._hung_up.set()
            with anyio.CancelScope(shield=True):
                await self._session_over.wait()
        if self._user.cancelled_caught:
            self._tell_failure()

    def _tell_failure(self) -> None:
        """Once: whoever caught it has dealt with it."""
        if self._failure and not self._told:
            self._told = True
            raise self._failure

    def _open_channel(self) -> ServerChannel:
        if self._channel is None:
            raise HarnessError("bug", f"the spare of server {self.name!r} was never started")
        return self._channel


class _Heard:
    """What a server did besides answering before anybody was there to hear it."""

    def __init__(self) -> None:
        self._kept: list[Callable[[SessionHooks], None]] = []
        self._told: SessionHooks | None = None

    def hooks(self) -> SessionHooks:
        return SessionHooks(
            lambda what, detail: self._hear(lambda hooks: hooks.violation(what, detail)),
            lambda method, params: self._hear(lambda hooks: hooks.notification(method, params)),
            lambda asked: self._hear(lambda hooks: hooks.asked(asked)),
        )

    def tell(self, hooks: SessionHooks) -> None:
        self._told = hooks
        for heard in self._kept:
            heard(hooks)
        self._kept = []

    def _hear(self, heard: Callable[[SessionHooks], None]) -> None:
        if self._told is None:
            self._kept.append(heard)
        else:
            heard(self._told)


class WaitingWires:
    """The wire logs of a place whose trial is not known yet; what passed so far is theirs once it is."""

    def __init__(self) -> None:
        self._wires: list[_WaitingWire] = []
        self._open: Callable[[str], WireLog] | None = None

    def open(self, server: str) -> WireLog:
        if self._open:
            return self._open(server)
        self._wires.append(_WaitingWire(server))
        return self._wires[-1]

    def belong_to(self, open_wire: Callable[[str], WireLog]) -> None:
        self._open = open_wire
        for wire in self._wires:
            wire.goes_to(open_wire(wire.server))

    @property
    def flooded(self) -> bool:
        return any(wire.flooded for wire in self._wires)


class _WaitingWire:
    """See `protocols.WireLog`; long frames come from threads of their own."""

    def __init__(self, server: str) -> None:
        self.server, self.flooded = server, False
        self._lock = threading.Lock()
        self._kept: list[tuple[Literal["out", "in"], float, bytes]] = []
        self._size, self._closed = 0, False
        self._wire: WireLog | None = None

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None:
        with self._lock:
            if self._wire:
                self._wire.frame(direction, at_s, line)
                return
            self._size += len(line)
            self.flooded = self.flooded or self._size > MAX_WAITING
            if self.flooded:
                self._kept.clear()
            else:
                self._kept.append((direction, at_s, line))

    def goes_to(self, wire: WireLog) -> None:
        with self._lock:
            self._wire, kept = wire, self._kept
            for frame in kept:
                wire.frame(*frame)
            self._kept = []
            if self._closed:
                wire.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._wire:
                self._wire.close()
