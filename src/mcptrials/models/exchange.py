"""Exchange: JSON posted to a provider as its SDK would, and what comes of it, a value or a failure of ours."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import anyio
from anyio import to_thread

from mcptrials import excerpt
from mcptrials.encoding import LONG, TooDeepError, TooLargeError, dump_text, parse_foreign
from mcptrials.errors import ProviderError, TrialError, describe
from mcptrials.models.connection import Answer, ApiKey, open_connections, proxy_for, read_bounded
from mcptrials.models.http_failure import failure, hidden_failure

Body = dict[str, Any]
_MOVED = frozenset({307, 308})
"""Redirects that keep method and body."""
_MAX_REDIRECTS = 3


class Exchange:
    """The way of request bodies to one provider and back.

    The SDK says where to and with which headers. What it would do besides costs most of a request's time and is not
    wanted here: to copy, rename and validate what is sent and what comes back.

    Args:
        client: the SDK's client, which knows address, headers and key.
    """

    def __init__(self, client: Any, key: ApiKey, timeout_s: float) -> None:
        self._key, self._timeout_s = key, timeout_s
        self._base_url = str(client.base_url).rstrip("/")
        self._proxy = proxy_for(self._base_url)
        wanted = {**client.auth_headers, **client.default_headers}
        # Values that are no text are the SDK's marks for headers that are left out.
        self._headers = {name: value for name, value in wanted.items() if isinstance(value, str)}
        if urlsplit(self._base_url).username is not None:  # it says who we are, and there is one header for that
            self._headers = {name: value for name, value in self._headers.items() if name.lower() != "authorization"}
        self._connections: aiohttp.ClientSession | None = None

    async def settle(
        self, path: str, make_body: Callable[[], Body], learn: Callable[[ProviderError, Body], None]
    ) -> tuple[Body, Any]:
        """The answer to a body, and that body: made anew for as long as what is learnt from refusals changes it.

        Args:
            learn: takes a refusal (400, 422) and the body refused; it must never unlearn, or this would not end.
        """
        body = make_body()
        while True:
            try:
                return body, await self.post(path, body)
            except ProviderError as refusal:
                if refusal.status not in {400, 422}:
                    raise
                learn(refusal, body)
                # Another request may have learnt it in the meantime: what counts is what is sent next.
                refused, body = body, make_body()
                if body == refused:
                    raise

    async def post(self, path: str, body: Body) -> Any:
        """The JSON value of the answer to one body.

        Raises:
            TrialError: the provider refused or failed, or the conversation no longer fits the model.
        """
        try:
            with anyio.fail_after(self._timeout_s):
                answer = await self._answer(path, dump_text(body).encode())
        except aiohttp.ClientError as exc:  # some are timeouts of the system's
            raise ProviderError("connection", describe(exc), retryable=True) from exc
        except TimeoutError as exc:
            raise ProviderError("timeout", f"no reply within {self._timeout_s:g} s", retryable=True) from exc
        if not answer.is_good:
            raise self._refused(answer)
        long = len(answer.content) > LONG
        return await to_thread.run_sync(_value, answer) if long else _value(answer)

    async def _answer(self, path: str, body: bytes) -> Answer:
        if self._connections is None:
            self._connections = open_connections()
        url = self._base_url + path
        for _ in range(_MAX_REDIRECTS):
            answer = await self._sent(self._connections, url, body)
            onwards = _onwards(url, answer)
            if onwards is None:
                break
            url = onwards
        return answer

    async def _sent(self, connections: aiohttp.ClientSession, url: str, body: bytes) -> Answer:
        """Redirects are followed by us alone: elsewhere the conversation would go along, and keys in other headers."""
        async with connections.post(
            url, data=body, headers=self._headers, proxy=self._proxy, allow_redirects=False
        ) as response:
            return await read_bounded(response)

    async def aclose(self) -> None:
        if self._connections is not None:
            await self._connections.close()

    def _refused(self, answer: Answer) -> TrialError:
        found = failure(answer.status, _error_body(answer), answer.headers)
        if isinstance(found, ProviderError) and found.cause == "auth":
            return ProviderError("auth", f"{found.message}; the key came from: {self._key.source}", status=found.status)
        return found


def _onwards(url: str, answer: Answer) -> str | None:
    """Where a redirect within the same origin leads."""
    if answer.status not in _MOVED:
        return None
    try:
        target = urljoin(url, answer.headers.get("location", ""))
        here, there = urlsplit(url), urlsplit(target)
    except ValueError:
        return None
    return target if (here.scheme, here.netloc) == (there.scheme, there.netloc) else None


def _value(answer: Answer) -> Any:
    """The JSON value of a good answer; some gateways send their errors as good answers too."""
    try:
        value = parse_foreign(answer.content)
    except ValueError as exc:
        message = f"the provider's reply {_fault(exc)}: {excerpt.beginning(answer.text, 200)!r}"
        raise ProviderError("http", message, status=answer.status, retryable=True) from exc
    if hidden := hidden_failure(value, answer.headers):
        raise hidden
    return value


def _fault(exc: ValueError) -> str:
    if isinstance(exc, TooLargeError):
        return f"holds a number that cannot be read ({exc})"
    return "is nested too deeply" if isinstance(exc, TooDeepError) else "is not JSON"


def _error_body(answer: Answer) -> Any:
    try:
        return parse_foreign(answer.content)
    except ValueError:
        return answer.text
