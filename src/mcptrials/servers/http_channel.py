"""The channel of a server by URL: each message is posted, and frames come back as the body or a stream of events.

Spec 2026-07-28 and 2025-11-25, basic/transports/streamable-http. What comes back is handed on as it was sent; what HTTP
alone says (a status, a broken connection) ends the channel with a failure, so that nobody waits for an answer in vain.
"""

import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from anyio import to_thread
from anyio.abc import TaskGroup

from mcptrials.encoding import LONG, dump_text
from mcptrials.errors import HarnessError, ServerError, TrialError
from mcptrials.protocols import ServerExit, WireLog
from mcptrials.servers.channel import EXIT_GRACE_S, MAX_LINE
from mcptrials.servers.frames import request_id
from mcptrials.servers.http_exchange import QUOTED, Access, Exchanges
from mcptrials.servers.http_failure import OLD_TRANSPORT, no_answer, refusal, shown_url, unreachable
from mcptrials.servers.http_headers import MessageHeaders, modern_version
from mcptrials.servers.sse import read_events
from mcptrials.servers.tee import Tee

_NOTICE_S = 10.0
"""For the answer to what is no request."""
_RETRY_S, _MIN_RETRY_S = 1.0, 0.05
"""Before a stream that the server cuts off is gone on with: by default, and at least."""
_OLD_TRANSPORT_S = 3.0


@dataclass
class _Sent:
    """A message of ours on its way."""

    value: Mapping[str, Any]
    line: bytes
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    answered: bool = False
    last_event_id: str | None = None
    retry_s: float = _RETRY_S

    @property
    def method(self) -> str:
        return str(self.value.get("method", "our answer"))

    @property
    def id(self) -> Any:
        return self.value.get("id")


class HttpChannel:
    """Frames to and from one endpoint, teed to the wire log."""

    def __init__(self, access: Access, client: httpx2.AsyncClient, wire: WireLog, tasks: TaskGroup) -> None:
        self._access, self._tee, self._tasks = access, Tee(wire), tasks
        self.exchanges = Exchanges(access, client)
        self._headers = MessageHeaders()
        self._in_flight: dict[Any, _Sent] = {}
        self._failure: TrialError | None = None
        self._inbox, self._frames = anyio.create_memory_object_stream[bytes](float("inf"))
        self._exit: ServerExit | None = None

    async def send(self, line: bytes) -> None:
        sent = _Sent(json.loads(line), line)
        if sent.method == "notifications/cancelled":
            self._cancel(sent)
            return
        self._tee.sent(line)
        if sent.id is not None and "method" in sent.value:
            self._in_flight[sent.id] = sent
            self._tasks.start_soon(self._request, sent)
        elif sent.method == "notifications/initialized":
            await self._notify(sent)
            if self._headers.session_id:
                self._tasks.start_soon(self._listen)
        else:
            self._tasks.start_soon(self._notify, sent)

    def _cancel(self, sent: _Sent) -> None:
        """The modern era says it by closing the response, the legacy era by a message (spec, patterns/cancellation)."""
        params = sent.value.get("params")
        cancelled = self._in_flight.get(params.get("requestId") if isinstance(params, dict) else None)
        if cancelled is None:
            return
        cancelled.scope.cancel()
        if modern_version(cancelled.value) is None:
            self._tee.sent(sent.line)
            self._tasks.start_soon(self._notify, sent)

    async def receive(self) -> bytes:
        """The next frame.

        Raises:
            EOFError: the channel is closed.
            ServerError, HarnessError: why nothing more will come.
        """
        try:
            return await self._frames.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise (self._failure or EOFError()) from None

    async def settle(self) -> int | None:
        return None

    def exited(self) -> ServerExit | None:
        return self._exit

    def stderr_tail(self) -> str | None:
        return None

    # --- One message -------------------------------------------------------------------------------------------------

    async def _request(self, sent: _Sent) -> None:
        with sent.scope, self._failing(sent.method):
            async with self._posted(sent) as response:
                await self._take(response, sent)
            await self._resume(sent)
            if not sent.answered:
                raise no_answer(response, sent.method, "")
        if self._in_flight.get(sent.id) is sent:
            del self._in_flight[sent.id]

    async def _notify(self, sent: _Sent) -> None:
        """What is no request has no answer; a server that refuses it says so by what it does next."""
        with anyio.move_on_after(_NOTICE_S), self._failing(sent.method):
            async with self._posted(sent) as response:
                if response.status_code == 401:  # noqa: PLR2004 - Unauthorized
                    raise refusal(response, sent.method, "", self._access.credential)

    @contextmanager
    def _failing(self, method: str) -> Iterator[None]:
        try:
            yield
        except TrialError as failure:
            self._fail(failure)
        except httpx2.HTTPError as exc:
            self._fail(unreachable(exc, self._access.url, method))

    def _fail(self, failure: TrialError) -> None:
        self._failure = self._failure or failure
        self._inbox.close()

    @asynccontextmanager
    async def _posted(self, sent: _Sent) -> AsyncIterator[httpx2.Response]:
        async with self.exchanges.open("POST", self._headers.of(sent.value), sent.line) as response:
            yield response

    # --- What comes back ---------------------------------------------------------------------------------------------

    async def _take(self, response: httpx2.Response, sent: _Sent) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_success and kind == "text/event-stream":
            await self._take_events(response, sent)
        elif response.is_success and kind == "application/json":
            body = await self.exchanges.body(response)
            await self._deliver(body, response.headers)
            if not sent.answered:
                raise no_answer(response, sent.method, body[:QUOTED].decode("utf-8", "replace"))
        elif response.is_success:
            raise no_answer(response, sent.method, await self.exchanges.quotable(response))
        else:
            await self._take_refusal(response, sent)

    async def _take_refusal(self, response: httpx2.Response, sent: _Sent) -> None:
        body = await self._refusing_body(response)
        failure = refusal(response, sent.method, body[:QUOTED].decode("utf-8", "replace"), self._access.credential)
        ours = isinstance(failure, HarnessError)
        lost = response.status_code == 404 and self._headers.session_id is not None  # noqa: PLR2004 - Not Found
        if not (ours or lost) and (error := _error(body)) is not None:
            await self._tee.heard_by_many(body, time.monotonic())
            self._hand_on(body if _of(sent, body) else _answer(sent, error), sent)
        elif sent.method == "server/discover" and not ours and response.is_error:
            status = {"code": -32601, "message": f"HTTP {response.status_code}"}
            self._hand_on(_answer(sent, status), sent)  # no modern server, as far as HTTP can say (spec, versioning)
        elif sent.method == "initialize" and not ours and await self._is_old_transport():
            raise ServerError("contract_violation", f"{shown_url(self._access.url)} {OLD_TRANSPORT}")
        else:
            raise failure

    async def _refusing_body(self, response: httpx2.Response) -> bytes:
        """Whole where it may hold an error of the protocol; else its beginning will do, for it may never end."""
        if not response.is_error:
            return b""
        if "json" in response.headers.get("content-type", ""):
            return await self.exchanges.body(response)
        return (await self.exchanges.quotable(response)).encode()

    async def _is_old_transport(self) -> bool:
        """Whether a GET is answered with an `endpoint` event (spec, basic/transports, backwards compatibility)."""
        with anyio.move_on_after(_OLD_TRANSPORT_S):
            async with self.exchanges.open("GET", self._headers.of_stream(None)) as response:
                if response.is_success and "text/event-stream" in response.headers.get("content-type", ""):
                    async with aclosing(read_events(self.exchanges.chunks(response), QUOTED)) as events:
                        async for event in events:
                            return event.kind == "endpoint"
        return False

    async def _take_events(self, response: httpx2.Response, sent: _Sent) -> None:
        """Frames until the answer is there, or the stream is over."""
        try:
            async with aclosing(read_events(self.exchanges.chunks(response), MAX_LINE)) as events:
                async for event in events:
                    if event.id:
                        sent.last_event_id = event.id
                    if event.retry_s is not None:
                        sent.retry_s = event.retry_s
                    if event.data and event.kind == "message":
                        await self._deliver(event.data, response.headers)
                    if sent.answered:
                        return
        except httpx2.TransportError:
            if sent.last_event_id is None:
                raise

    async def _resume(self, sent: _Sent) -> None:
        """Goes on with a stream that was cut off, if its events have names (spec 2025-11-25: resumability)."""
        while not sent.answered and sent.last_event_id is not None:  # until the caller's time is over
            await anyio.sleep(min(max(sent.retry_s, _MIN_RETRY_S), _NOTICE_S))
            headers = self._headers.of_stream(sent.last_event_id)
            async with self.exchanges.open("GET", headers) as response:
                if not response.is_success:
                    said = await self.exchanges.quotable(response)
                    raise refusal(response, f"the resumption of {sent.method}", said, self._access.credential)
                await self._take_events(response, sent)

    async def _listen(self) -> None:
        """The stream of what the server says unasked; it may have none, or end it (legacy era)."""
        last, failures = None, 0
        while failures < 2:  # noqa: PLR2004 - one more try
            listener = _Sent({"method": "GET"}, b"", last_event_id=last)
            try:
                headers = self._headers.of_stream(last)
                async with self.exchanges.open("GET", headers) as response:
                    if not response.is_success:
                        return
                    await self._take_events(response, listener)
                failures = 0
            except httpx2.HTTPError:
                failures += 1
            except TrialError as failure:
                self._fail(failure)
                return
            last = listener.last_event_id
            await anyio.sleep(min(max(listener.retry_s, _MIN_RETRY_S), _NOTICE_S))

    async def _deliver(self, line: bytes, headers: Mapping[str, str]) -> None:
        """One frame, as it was sent."""
        at_s = time.monotonic()
        value = await to_thread.run_sync(_value, line) if len(line) > LONG else _value(line)
        for sent in self._answered_by(line, value):
            sent.answered = True
            if isinstance(value, dict):
                self._headers.learn(sent.value, value.get("result"), headers)
        self._put(line)
        await self._tee.heard_by_many(line, at_s)

    def _answered_by(self, line: bytes, value: Any) -> list[_Sent]:
        """The request that a frame answers, also a frame that cannot be read but still names it."""
        if isinstance(value, dict):
            found = None if "method" in value else self._in_flight.get(request_id(value.get("id")))
            return [found] if found else []
        return [sent for sent in self._in_flight.values() if _names(line, sent.id)]

    def _hand_on(self, line: bytes, sent: _Sent) -> None:
        sent.answered = True
        self._put(line)

    def _put(self, line: bytes) -> None:
        if self._failure is None and self._exit is None:
            self._inbox.send_nowait(line)

    # --- The end -----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Ends the session, if the server keeps one."""
        if self._exit is not None:
            return
        began = time.monotonic()
        for sent in self._in_flight.values():
            sent.scope.cancel()
        if self._headers.session_id and self._failure is None:
            with anyio.move_on_after(EXIT_GRACE_S):
                await self._end_session()
        crashed = self._failure is not None and self._failure.blame == "server"
        self._exit = ServerExit(
            exit_code=None,
            how="crashed" if crashed else "closed",
            ms=(time.monotonic() - began) * 1000,
            stderr_bytes=0,
            stderr_tail="",
        )
        self._inbox.close()
        self._frames.close()

    async def _end_session(self) -> None:
        """A server may refuse (405); what matters is over."""
        try:
            response = await self.exchanges.ask("DELETE", self._headers.of_session(), None)
            await response.aclose()
        except httpx2.HTTPError:
            pass


def _value(line: bytes) -> Any:
    """None, where it cannot be read."""
    try:
        return json.loads(line.decode("utf-8", "replace"))  # UTF-8 only (spec, basic/transports)
    except (ValueError, RecursionError):
        return None


def _error(body: bytes) -> Any:
    """The error in a body that is one of JSON-RPC."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = value.get("error") if isinstance(value, dict) and "jsonrpc" in value else None
    return error if isinstance(error, dict) else None


def _of(sent: _Sent, body: bytes) -> bool:
    return bool(request_id(json.loads(body).get("id")) == sent.id)


def _answer(sent: _Sent, error: Any) -> bytes:
    """An error that HTTP ties to a request, with the id that it lacks: a server may refuse before it reads the id."""
    return dump_text({"jsonrpc": "2.0", "id": sent.id, "error": error}).encode()


def _names(line: bytes, number: Any) -> bool:
    return re.search(rb'"id"\s*:\s*%d\b' % number, line[:300]) is not None if isinstance(number, int) else False
