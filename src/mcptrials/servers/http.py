"""A server by URL, which speaks Streamable HTTP and is started by somebody else."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import anyio
import httpx2

from mcptrials.errors import HarnessError
from mcptrials.protocols import Place
from mcptrials.servers.background import background
from mcptrials.servers.http_channel import HttpChannel
from mcptrials.servers.http_exchange import Access
from mcptrials.servers.token import TokenSource

CONNECT_S = 10.0
READ_S = 3600.0
"""The longest silence in a response; calls have their own, shorter limits."""
KEEP_ALIVE_S = 2.0
"""Shorter than what common servers grant, so that no request meets a connection that is just being closed."""
_LOOPBACK = ("localhost", "::1")


@dataclass(frozen=True)
class HttpServer:
    """Where a server is, and what it is told of us."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Header -> the variable of the environment that its secret comes from."""
    token: TokenSource | None = None
    ca_file: Path | None = None

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator[HttpChannel]:
        """A connection of its own; a session that the server keeps for it is ended when the context ends.

        Raises:
            HarnessError: auth, when the command for the token gives none; io, when `ca_file` cannot be read.
        """
        with closing(place.wire(self.name)) as wire:
            async with self._client() as client, background() as tasks:
                channel = HttpChannel(self._access(place), client, wire, tasks)
                try:
                    await channel.exchanges.authorize()
                    yield channel
                finally:
                    with anyio.CancelScope(shield=True):
                        await channel.close()

    def _access(self, place: Place) -> Access:
        headers = {name: place.expand(value) for name, value in self.headers.items()}
        return Access(place.expand(self.url), headers, self._credential, self.token, place)

    @property
    def _credential(self) -> str:
        if self.token:
            return f"what servers.{self.name}.token_command printed"
        if self.headers:
            held = (
                f"{name} (from {self.variables[name]})" if name in self.variables else name for name in self.headers
            )
            return f"what servers.{self.name}.headers hold: {', '.join(held)}"
        return f"us without a credential; add servers.{self.name}.headers or token_command"

    def _client(self) -> httpx2.AsyncClient:
        """Proxies of the environment are for the world outside, not for this machine."""
        host = httpx2.URL(self.url).host
        return httpx2.AsyncClient(
            verify=self._trust,
            trust_env=not (host in _LOOPBACK or host.startswith("127.")),
            timeout=httpx2.Timeout(CONNECT_S, read=READ_S, write=READ_S),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_S),
        )

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """The system's certificates, and the one that the project names; read once, and not for plain HTTP."""
        if not self.url.lower().startswith("https:"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca_file is None:
            return httpx2.create_ssl_context()
        try:
            trust = ssl.create_default_context()
            trust.load_verify_locations(self.ca_file)
        except (OSError, ssl.SSLError) as exc:
            raise HarnessError("io", f"ca_file of server {self.name!r}: cannot read {self.ca_file}: {exc}") from exc
        return trust
