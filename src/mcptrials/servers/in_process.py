"""A server as a Python object in this process, made anew for each trial by calling a factory."""

import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp.server import Server

from mcptrials.errors import describe
from mcptrials.protocols import Place
from mcptrials.servers.thread_channel import ServerObject, ThreadChannel


@dataclass(frozen=True)
class InProcessServer:
    """How to make a server object: the SDK's `Server` and `MCPServer`, and FastMCP's."""

    name: str
    factory: Callable[..., Any]
    path: str
    """What the project file calls the factory."""

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator[ThreadChannel]:
        """A new object, served in a thread of its own, so that one that blocks does not hold up the trials."""
        with closing(place.wire(self.name)) as wire:
            channel = ThreadChannel(partial(self._made, place.trial_dir), wire, self.path)
            channel.start()
            try:
                yield channel
            finally:
                with anyio.CancelScope(shield=True):
                    await channel.close()

    async def _made(self, trial_dir: Path) -> ServerObject:
        """Raises:
        TypeError: the factory gives what is no server.
        """
        if not logging.getLogger().handlers:
            logging.getLogger().addHandler(logging.NullHandler())  # the SDK would send the root's logs to our stderr
        wanted = {"trial_dir": str(trial_dir)} if "trial_dir" in inspect.signature(self.factory).parameters else {}
        made = self.factory(**wanted)
        return as_server(await made if inspect.isawaitable(made) else made)


def as_server(made: Any) -> ServerObject:
    """The SDK's low-level server inside an object, and what must be entered around it.

    Raises:
        TypeError: there is none.
    """
    inner = next((found for name in ("_lowlevel_server", "_mcp_server") if (found := getattr(made, name, None))), made)
    if not isinstance(inner, Server):
        raise TypeError(f"it gave {_article(made)}, not a server of the MCP SDK 2 or FastMCP")
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] = getattr(made, "_lifespan_manager", nullcontext)
    return ServerObject(inner, lifespan)


def in_process_server(name: str, path: str, loaded: Any) -> InProcessServer:
    """A server by what its path names.

    Raises:
        TypeError: that cannot be called without arguments.
    """
    if not callable(loaded):
        raise TypeError(f"{path!r} is {_article(loaded)}; name a function that makes a new server for each trial")
    try:
        signature = inspect.signature(loaded)
        needed = [
            each.name
            for each in signature.parameters.values()
            if each.default is each.empty
            and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            and each.name != "trial_dir"
        ]
    except ValueError as exc:
        raise TypeError(f"{path!r} cannot be called: {describe(exc)}") from exc
    if needed:
        raise TypeError(f"{path!r} wants the argument {needed[0]!r}; it may only want 'trial_dir'")
    return InProcessServer(name, loaded, path)


def _article(value: Any) -> str:
    return f"an object of type {type(value).__qualname__}"
