"""Requests to one endpoint: authorized, redirected within its origin only, with bodies that are bounded."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx2

from mcptrials.errors import ServerError
from mcptrials.protocols import Place
from mcptrials.servers.channel import MAX_LINE, MAX_OUTPUT
from mcptrials.servers.token import TokenSource

QUOTED = 64 << 10
"""Bytes of a body that is only quoted."""
_QUOTE_S = 3.0
_UNAUTHORIZED = 401
_MAX_REDIRECTS = 3
_MOVED = (307, 308)
"""Redirects that keep method and body."""


@dataclass(frozen=True)
class Access:
    """Where a server is, and who we are there."""

    url: str
    headers: Mapping[str, str]
    credential: str
    """Where the project file says who we are, for messages."""
    token: TokenSource | None
    place: Place


class Exchanges:
    """All requests of one connection."""

    def __init__(self, access: Access, client: httpx2.AsyncClient) -> None:
        self._access, self._client = access, client
        self._bearer: str | None = None
        self._received = 0

    async def authorize(self) -> None:
        """Gets a token, if a command gives it.

        Raises:
            HarnessError: auth.
        """
        if self._access.token:
            self._bearer = await self._access.token.fresh(self._access.place)

    @asynccontextmanager
    async def open(
        self, method: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """A response, after asking once more with a new token where the old one is refused."""
        refused = self._bearer
        response = await self.ask(method, headers, content)
        if response.status_code == _UNAUTHORIZED and self._access.token:
            await response.aclose()
            self._bearer = await self._access.token.instead_of(refused, self._access.place)
            response = await self.ask(method, headers, content)
        try:
            yield response
        finally:
            await response.aclose()

    async def ask(self, method: str, headers: Mapping[str, str], content: bytes | None) -> httpx2.Response:
        given = httpx2.Headers(self._access.headers)
        given.update(headers)
        if self._bearer:
            given["authorization"] = f"Bearer {self._bearer}"
        request = self._client.build_request(method, self._access.url, headers=given, content=content)
        response = await self._client.send(request, stream=True)
        for _ in range(_MAX_REDIRECTS):
            target = response.next_request
            if target is None or response.status_code not in _MOVED or not _same_origin(target.url, request.url):
                break
            await response.aclose()
            response = await self._client.send(target, stream=True)
        return response

    async def chunks(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        async for chunk in response.aiter_bytes():
            self._received += len(chunk)
            if self._received > MAX_OUTPUT:
                raise ServerError("contract_violation", f"the server sent more than {MAX_OUTPUT >> 20} MiB")
            yield chunk

    async def body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async with aclosing(self.chunks(response)) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > MAX_LINE:
                    raise ServerError("contract_violation", f"one message is larger than {MAX_LINE >> 20} MiB")
        return bytes(body)

    async def quotable(self, response: httpx2.Response) -> str:
        """The beginning of a body that may never end."""
        body = bytearray()
        with anyio.move_on_after(_QUOTE_S):
            async with aclosing(self.chunks(response)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > QUOTED:
                        break
        return body[:QUOTED].decode("utf-8", "replace")


def _same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    return (one.scheme, one.host, one.port, one.userinfo) == (other.scheme, other.host, other.port, other.userinfo)
