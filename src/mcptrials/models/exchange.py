"""Exchange: JSON posted to a provider as its SDK would, and what comes of it, a value or a failure of ours."""

from collections.abc import Callable
from typing import Any

import anyio
import httpx2
from anyio import to_thread

from mcptrials import excerpt
from mcptrials.encoding import LONG, TooDeepError, TooLargeError, dump_text, parse_foreign
from mcptrials.errors import ProviderError, TrialError, describe
from mcptrials.models.connection import ApiKey, send_bounded
from mcptrials.models.http_failure import failure, hidden_failure

Body = dict[str, Any]


class Exchange:
    """The way of request bodies to one provider and back.

    The SDK says where to and with which headers. What it would do besides costs a third of a request's time and is not
    wanted here: to copy, rename and validate what is sent and what comes back.

    Args:
        client: the SDK's client, which knows address, headers and key.
        http: the HTTP client under it.
    """

    def __init__(self, client: Any, http: httpx2.AsyncClient, key: ApiKey, timeout_s: float) -> None:
        self._http, self._key, self._timeout_s = http, key, timeout_s
        self._base_url = str(client.base_url).rstrip("/")
        wanted = {**client.auth_headers, **client.default_headers}
        self._headers = httpx2.Headers(http.headers)
        # Values that are no text are the SDK's marks for headers that are left out.
        self._headers.update({name: value for name, value in wanted.items() if isinstance(value, str)})

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
        request = httpx2.Request("POST", self._base_url + path, headers=self._headers, content=dump_text(body).encode())
        try:
            with anyio.fail_after(self._timeout_s):
                response = await send_bounded(self._http, request)
        except (TimeoutError, httpx2.TimeoutException) as exc:
            raise ProviderError("timeout", f"no reply within {self._timeout_s:g} s", retryable=True) from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise ProviderError("connection", describe(exc), retryable=True) from exc
        if not response.is_success:
            raise self._refused(response)
        long = len(response.content) > LONG
        return await to_thread.run_sync(_value, response) if long else _value(response)

    async def aclose(self) -> None:
        await self._http.aclose()

    def _refused(self, response: httpx2.Response) -> TrialError:
        found = failure(response.status_code, _error_body(response), response.headers)
        if isinstance(found, ProviderError) and found.cause == "auth":
            return ProviderError("auth", f"{found.message}; the key came from: {self._key.source}", status=found.status)
        return found


def _value(response: httpx2.Response) -> Any:
    """The JSON value of a good answer; some gateways send their errors as good answers too."""
    try:
        value = parse_foreign(response.content)
    except ValueError as exc:
        message = f"the provider's reply {_fault(exc)}: {excerpt.beginning(response.text, 200)!r}"
        raise ProviderError("http", message, status=response.status_code, retryable=True) from exc
    if hidden := hidden_failure(value, response.headers):
        raise hidden
    return value


def _fault(exc: ValueError) -> str:
    if isinstance(exc, TooLargeError):
        return f"holds a number that cannot be read ({exc})"
    return "is nested too deeply" if isinstance(exc, TooDeepError) else "is not JSON"


def _error_body(response: httpx2.Response) -> Any:
    try:
        return parse_foreign(response.content)
    except ValueError:
        return response.text
