"""Channels and sessions with the server that misbehaves, and what is heard on them."""

import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mcptrials.protocols import Asked, Place, Server, ServerChannel, SessionHooks
from mcptrials.servers.asking import NOBODY, Client
from mcptrials.servers.session import Era, McpSession, open_session
from mcptrials.servers.stdio import StdioServer


@dataclass
class Wire:
    """A wire log in memory."""

    frames: list[tuple[str, bytes]] = field(default_factory=list)
    written: list[tuple[int, int]] = field(default_factory=list)
    """Size and writing thread of each frame."""
    closed: bool = False

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None:
        self.written.append((len(line), threading.get_ident()))
        self.frames.append((direction, line))

    def close(self) -> None:
        self.closed = True

    def sent(self, method: str) -> list[Any]:
        """The params of what we sent, by method."""
        values = [json.loads(line) for direction, line in self.frames if direction == "out"]
        return [value.get("params") for value in values if value.get("method") == method]


@dataclass
class Talk:
    """A session with what was heard beside it."""

    session: McpSession
    channel: ServerChannel
    wire: Wire
    violations: list[tuple[str, str]]
    notifications: list[tuple[str, Any]]
    asked: list[Asked]

    @property
    def breaches(self) -> list[str]:
        return [what for what, _ in self.violations]


def faulty(*faults: str, era: str = "both") -> StdioServer:
    spoiled = [word for fault in faults for word in ("--fault", fault)]
    args = ("-m", "mcptrials.servers.faulty", "--era", era, "--state", "{trial_dir}/memory.txt", *spoiled)
    return StdioServer(name="faulty", command="{python}", args=args)


def python(program: str) -> StdioServer:
    return StdioServer(name="program", command=sys.executable, args=("-c", program))


def place(folder: Path, wire: Wire | None = None) -> Place:
    return Place(folder, folder, lambda _: wire or Wire())


@asynccontextmanager
async def talking(
    server: Server, folder: Path, *, era: Era = "auto", connect_s: float = 10, client: Client = NOBODY
) -> AsyncIterator[Talk]:
    wire = Wire()
    violations: list[tuple[str, str]] = []
    notifications: list[tuple[str, Any]] = []
    asked: list[Asked] = []
    hooks = SessionHooks(
        lambda what, detail: violations.append((what, detail)),
        lambda method, params: notifications.append((method, params)),
        asked.append,
    )
    async with (
        server.open(place(folder, wire)) as channel,
        open_session(server.name, channel, hooks, era=era, connect_s=connect_s, client=client) as session,
    ):
        yield Talk(session, channel, wire, violations, notifications, asked)
