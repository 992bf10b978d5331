"""HTTP servers on a free port of this machine, each in a thread, for as long as a test needs them."""

import asyncio
import datetime
import ipaddress
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

App = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


class _Server(uvicorn.Server):
    """Ends when it is told, not at the next look at the clock."""

    async def main_loop(self) -> None:
        self.loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self.running.set()
        await self.stopping.wait()

    running: threading.Event


class Served:
    """A running server; `stop` ends it at once, whatever it is doing."""

    def __init__(self, app: App, port: int = 0, **tls: Any) -> None:
        settings = uvicorn.Config(app, "127.0.0.1", port, log_config=None, lifespan="auto", ws="none", **tls)
        settings.timeout_graceful_shutdown = 0
        self._server = _Server(settings)
        self._server.running = threading.Event()
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._scheme = "https" if tls else "http"

    def start(self) -> "Served":
        self._thread.start()
        assert self._server.running.wait(10)
        self.port = int(self._server.servers[0].sockets[0].getsockname()[1])
        return self

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/mcp"

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._server.loop.call_soon_threadsafe(self._server.stopping.set)
        self._thread.join(10)
        assert not self._thread.is_alive()


@contextmanager
def serving(app: App, port: int = 0, **tls: Any) -> Iterator[Served]:
    served = Served(app, port, **tls).start()
    try:
        yield served
    finally:
        served.stop()


def answering(answer: Callable[[Request], Awaitable[Response]]) -> Starlette:
    """An app that answers every method at `/mcp` in its own way."""
    return Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST", "DELETE"])])


def library() -> MCPServer:
    """A small server of the SDK."""
    server = MCPServer("library", instructions="Look books up.")

    @server.tool()
    def pages(title: str, copies: int = 1) -> dict[str, int]:
        """How many pages a book has."""
        if title != "Emma":
            raise ValueError(f"no book {title!r}")
        return {"pages": 448 * copies}

    return server


def key_and_certificate() -> bytes:
    """A key and a certificate for 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    made = made.add_extension(host, critical=False).add_extension(x509.BasicConstraints(True, None), critical=True)
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return secret + made.sign(key, hashes.SHA256()).public_bytes(pem)
