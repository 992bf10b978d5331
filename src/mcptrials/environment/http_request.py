"""One HTTP request of a reader: to the given origin only, bounded in time and size."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import httpx2

from mcptrials.environment.remains import MAX_BYTES, ReadError
from mcptrials.errors import describe

MAX_REDIRECTS = 5
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    charset: str

    def text(self) -> str:
        return self.body.decode(self.charset)


async def fetch(
    method: str, url: str, headers: Mapping[str, str], body: str | None, *, status_only: bool, timeout_s: float
) -> Answer:
    """The answer to a request.

    Args:
        status_only: whether any status will do, also that of a redirect, which is then not followed.

    Raises:
        ReadError: no answer, not in time, too large, from elsewhere, or not a success.
    """
    shown = f"{method} {_without_secrets(url)}"
    no_proxies = httpx2.AsyncClient(trust_env=False, timeout=None, follow_redirects=False)
    try:
        with anyio.fail_after(timeout_s):
            async with no_proxies as client:
                content = None if body is None else body.encode()
                plain = {"accept-encoding": "identity"} | dict(headers)
                request = client.build_request(method, url, headers=plain, content=content)
                return await _answer(client, request, shown, status_only=status_only)
    except TimeoutError:
        raise ReadError(f"{shown}: no answer within {timeout_s:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeEncodeError) as exc:
        raise ReadError(f"{shown}: {describe(exc)}") from exc


async def _answer(client: httpx2.AsyncClient, request: httpx2.Request, shown: str, *, status_only: bool) -> Answer:
    origin = _origin(request.url)
    for _ in range(MAX_REDIRECTS + 1):
        response = await client.send(request, stream=True)
        try:
            if status_only:
                return Answer(response.status_code, b"", "utf-8")
            if response.next_request is None:
                return await _body(response, shown)
            if _origin(response.next_request.url) != origin:
                raise ReadError(f"{shown}: it redirects to another origin, which is not followed")
            request = response.next_request
        finally:
            await response.aclose()
    raise ReadError(f"{shown}: more than {MAX_REDIRECTS} redirects")


async def _body(response: httpx2.Response, shown: str) -> Answer:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MAX_BYTES:
            raise ReadError(f"{shown}: the answer has more than {MAX_BYTES >> 20} MiB")
    if not response.is_success:
        said = " ".join(content[: 4 * _SHOWN].decode("utf-8", "replace").split())[:_SHOWN]
        raise ReadError(f"{shown}: status {response.status_code}: {said}".rstrip(": "))
    return Answer(response.status_code, bytes(content), response.charset_encoding or "utf-8")


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _without_secrets(url: str) -> str:
    """An address for a message: user, password and query may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
