"""What a connection to a provider is made of: the HTTP client, the key, and where that came from."""

import os
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
import httpx2

from mcptrials.errors import ProviderError, UsageError

PLACEHOLDER_KEY = "not-needed"
"""Sent to servers of the user's own that ask for no key."""
MAX_CONNECTIONS = 500
MAX_BODY = 64 << 20
"""Bytes of an answer, unpacked: no model writes so much."""
MAX_HEADER = 64 << 10
"""Bytes of one header of an answer."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, and where the user can change it."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, unpacked."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_good(self) -> bool:
        return self.status in range(200, 300)

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


def find_key(provider: str, variable: str, *, base_url: str | None, api_key: str | None) -> ApiKey:
    """The key for a provider: the one given, or the environment's, which is for the provider's own endpoint alone.

    Raises:
        UsageError: there is none, or it fits into no HTTP header.
    """
    own = os.environ.get(variable, "")
    key = api_key or (PLACEHOLDER_KEY if base_url else own)
    if not key:
        what = f"no API key for {provider}"
        raise UsageError(what, hint=f"set the environment variable {variable}, or 'api_key' of the model")
    source = f"the environment's {variable}" if key == own else "'api_key' of the model"
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"the API key holds characters that no HTTP header can: {source}", hint="check line breaks")
    return ApiKey(key, "none, since the model has no 'api_key'" if key == PLACEHOLDER_KEY else source)


def unused_client() -> httpx2.AsyncClient:
    """For an SDK that is only asked what to send: it would make a client that loads certificates, which takes long."""
    return httpx2.AsyncClient(trust_env=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def open_connections() -> aiohttp.ClientSession:
    """Many at once, without time limits of their own, and without cookies, which would tie trials together."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_field_size=MAX_HEADER,
    )


def proxy_for(url: str) -> str | None:
    """The environment's proxy, by the rules of the standard library; none reaches this machine's loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


async def read_bounded(response: aiohttp.ClientResponse) -> Answer:
    """Raises:
    ProviderError: it is too long.
    aiohttp.ClientError: it breaks off.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY:
            message = f"the provider's reply is larger than {MAX_BODY >> 20} MiB"
            raise ProviderError("http", message, status=response.status, retryable=True)
    return Answer(response.status, response.headers, bytes(body))
