"""What an HTTP status, a broken connection or a redirect says of a server, as a failure with its blame."""

import os
import ssl
from collections.abc import Iterator
from http import HTTPStatus

import httpx2

from mcptrials.errors import HarnessError, ServerError, TrialError, describe

_SHOWN = 200
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = 401, 403, 404, 429
_REDIRECTS = range(300, 400)
OLD_TRANSPORT = (
    "is an endpoint of the HTTP+SSE transport of 2024, which is not spoken here: let the server speak Streamable HTTP, "
    "or start a bridge to it by 'command'"
)


def shown_url(url: str) -> str:
    """A URL for messages: without user, password, query and fragment."""
    parts = httpx2.URL(url)
    return str(parts.copy_with(userinfo=b"", query=None, fragment=None))


def refusal(response: httpx2.Response, method: str, said: str, credential: str) -> TrialError:
    """For a status that is no success, and no answer of the protocol either.

    Args:
        method: what was sent.
        said: the body.
        credential: where the project file says who we are.

    A credential that is refused, or a limit on requests that we exceed, is not the server's fault.
    """
    url, status = shown_url(str(response.request.url)), response.status_code
    how = f"{url} answered {method} with HTTP {status} {_phrase(status)}"
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        return HarnessError("auth", f"{how}: it does not accept {credential}{_quoted(said)}")
    if status == _TOO_MANY:
        return HarnessError("rate_limit", f"{how}: lower 'concurrency'")
    if status in _REDIRECTS:
        return ServerError("contract_violation", f"{how}: {_redirect(response)}")
    if status == _NOT_FOUND and "mcp-session-id" in response.request.headers:
        return ServerError("crash", f"{how}: it has lost the session; was it restarted?")
    return ServerError("crash", f"{how}{_quoted(said)}")


def no_answer(response: httpx2.Response, method: str, said: str) -> TrialError:
    """For a success that holds no message: the URL of a web page, say."""
    url, kind = shown_url(str(response.request.url)), response.headers.get("content-type", "no content type")
    status = response.status_code
    what = f"{url} answered {method} with no MCP message, but HTTP {status} and {kind[:_SHOWN]}{_quoted(said)}"
    return ServerError("contract_violation", f"{what}; is the URL that of an MCP endpoint?")


def unreachable(exc: httpx2.HTTPError, url: str, method: str) -> TrialError:
    """For a request that has no response, or not all of it."""
    url = shown_url(url)
    for cause in _causes(exc):
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"the TLS certificate of {url} is not trusted: {cause.verify_message}"
            return ServerError("crash", f"{what}; name the CA's certificate under 'ca_file'")
        if isinstance(cause, ssl.SSLError):
            return ServerError("crash", f"TLS with {url} fails: {cause.reason or cause}; is it https?")
    if isinstance(exc, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ServerError("crash", f"{url} does not take connections: no answer in time")
    if isinstance(exc, httpx2.ConnectError):
        return ServerError("crash", f"cannot connect to {url}: {_reason(exc)}; is the server running?")
    if isinstance(exc, httpx2.ProxyError):
        return ServerError("crash", f"the proxy does not lead to {url}: {describe(exc)}")
    return ServerError("crash", f"{url} broke the connection off during {method}: {describe(exc)}")


def _reason(exc: BaseException) -> str:
    """The system's word for it, below the client's layers."""
    found = [cause for cause in _causes(exc) if isinstance(cause, OSError) and cause.errno and cause.strerror]
    if not found:
        return describe(exc)
    number, text = found[-1].errno, found[-1].strerror
    return os.strerror(number) if number and number > 0 else str(text)


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.exceptions[0] if isinstance(exc, BaseExceptionGroup) else exc.__cause__ or exc.__context__


def _redirect(response: httpx2.Response) -> str:
    target = response.next_request
    if target is None:
        return "a redirect to nowhere"
    place = shown_url(str(target.url))
    return f"a redirect to {place}, which is not followed with your headers; set 'url' to it if it is the server"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "(no known status)"


def _quoted(said: str) -> str:
    text = " ".join(said.split())
    return f": {text[:_SHOWN]!r}" if text else ""
