"""What a connection to a provider is made of: the HTTP client under its SDK, the key, and where that came from."""

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

from mcptrials.errors import ProviderError, UsageError

PLACEHOLDER_KEY = "not-needed"
"""Sent to servers of the user's own that ask for no key."""
MAX_CONNECTIONS = 500
MAX_BODY = 64 << 20
"""Bytes of an answer, unpacked: no model writes so much."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, and where the user can change it."""

    value: str
    source: str


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


def http_client(make: Callable[..., httpx2.AsyncClient], base_url: str | None) -> httpx2.AsyncClient:
    """A client without time limits of its own, for many requests at once; `make` is the SDK's own kind."""
    limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS)
    url = urlsplit(base_url or "")
    if url.scheme == "http" and url.hostname in {"127.0.0.1", "localhost", "::1"}:
        # No proxy reaches this machine's loopback, and certificates, slow to load, have no part in plain HTTP.
        no_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return make(timeout=None, limits=limits, trust_env=False, verify=no_tls)
    return make(timeout=None, limits=limits)


async def send_bounded(http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """The whole answer to a request.

    Raises:
        ProviderError: it is too long.
        httpx2.HTTPError: there is none.
    """
    response = await http.send(request, stream=True)
    try:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BODY:
                message = f"the provider's reply is larger than {MAX_BODY >> 20} MiB"
                raise ProviderError("http", message, status=response.status_code, retryable=True)
        return httpx2.Response(response.status_code, headers=_decoded(response.headers), content=bytes(body))
    finally:
        await response.aclose()


def _decoded(headers: httpx2.Headers) -> httpx2.Headers:
    """The headers of a body that is no longer compressed."""
    left = httpx2.Headers(headers)
    left.pop("content-encoding", None)
    return left
