"""The SDK's stream pair over a channel, where every line is looked at before the engine sees it."""

import json
import math
import re
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import anyio
from anyio import to_thread
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from mcp_types.jsonrpc import ErrorData
from pydantic import ValidationError

from mcptrials import excerpt
from mcptrials.encoding import LONG, MAX_DEPTH, deeper, dump_text
from mcptrials.errors import TrialError
from mcptrials.protocols import ServerChannel, SessionHooks

MALFORMED = ErrorData(code=-32603, message="the answer is no valid response")
"""What the engine is told in place of an answer that it would drop, which would look like a hang."""
MAX_REPORTS = 1000
"""Of violations, of notifications and of the server's requests, in one session; all of them stand in the wire log."""
LIST_CHANGED = "notifications/tools/list_changed"
_NOT_JSON = "not_json"
MAX_HELD = 1 << 20
"""Lists and objects in one message. Each takes 70 bytes and more of memory, though it may be written in three."""
_SHOWN = 300
_ID = re.compile(rb'"id"\s*:\s*(\d+)')


class FrameReader:
    """What the server says, parsed; breaches of the protocol are reported and do not hang the session."""

    def __init__(self, channel: ServerChannel, hooks: SessionHooks) -> None:
        self._channel, self._hooks = channel, hooks
        self.awaited: set[Any] = set()
        """Ids of requests that have no answer yet; shared with the writer."""
        self.errors: dict[Any, Any] = {}
        """Raw JSON-RPC errors as they came over the wire, by request id."""
        self.malformed: dict[Any, Any] = {}
        """Answers that are no valid response, by request id."""
        self.ended = anyio.Event()
        """The server's output is over."""
        self.busy = False
        """Whether what was received is being read."""
        self.arrived_s: dict[Any, float] = {}
        """When an answer had come, by request id."""
        self.failure: TrialError | None = None
        """Why its output cannot be read any further."""
        self.list_changed = False
        """Whether the server said so since this was last put back."""
        self._on_stdout = channel.stderr_tail() is not None
        self._answered: set[Any] = set()
        self._given_up: set[Any] = set()
        self._reports = self._notifications = self._requests = 0
        self._line_s = 0.0

    def give_up(self) -> None:
        """No answer is awaited any longer; one that comes all the same is late."""
        self._given_up |= self.awaited
        self.awaited.clear()

    def give_up_on(self, number: int) -> None:
        self.awaited.discard(number)
        self._given_up.add(number)

    async def __anext__(self) -> SessionMessage:
        while True:
            self.busy = False
            try:
                line = await self._channel.receive()
            except (EOFError, TrialError) as exc:
                self.failure = exc if isinstance(exc, TrialError) else None
                self.ended.set()
                raise StopAsyncIteration from None
            self.busy, self._line_s = True, time.monotonic()
            message = self._message(line, await _read(line))
            if message is not None:
                return SessionMessage(message)

    async def receive(self) -> SessionMessage:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    def _message(self, line: bytes, written: "_Written") -> Any:
        for what, detail in written.breaches:
            self._violation(f"stdout_{what}" if what == _NOT_JSON and self._on_stdout else what, detail)
        value = written.value
        if not isinstance(value, dict):
            return self._unreadable(line)
        message = self._validated(value, line)
        if isinstance(message, JSONRPCNotification):
            return self._notification(message)
        if isinstance(message, JSONRPCRequest):
            return self._request(message)
        return message if "method" in value else self._answer(value, message if written.exact else None)

    def _unreadable(self, line: bytes) -> JSONRPCError | None:
        """Ends the wait for an answer that cannot be read, if at least its id can."""
        found = _ID.search(line[:_SHOWN])
        number = int(found.group(1)) if found else None
        return self._malformed(number, _shorten(line)) if number in self.awaited else None

    def _validated(self, value: dict[str, Any], line: bytes) -> Any:
        try:
            message = jsonrpc_message_adapter.validate_python(value, by_name=False)
        except ValidationError as exc:
            self._violation("malformed_message", f"{exc.errors()[0]['msg']}: {_shorten(line)}")
            return None
        if "result" in value and "error" in value:
            self._violation("malformed_message", f"both result and error: {_shorten(line)}")
            return None
        return message

    def _notification(self, message: JSONRPCNotification) -> None:
        """Nothing in the engine waits for notifications: they are told and go no further."""
        self._notifications += 1
        self.list_changed |= message.method == LIST_CHANGED
        if self._notifications <= MAX_REPORTS:
            self._hooks.notification(message.method, message.params)
        elif self._notifications == MAX_REPORTS + 1:
            self._violation("flood", f"more than {MAX_REPORTS} notifications; the rest stands in the wire log only")

    def _request(self, message: JSONRPCRequest) -> JSONRPCRequest | None:
        """Each has an answer that waits to be read; one that asks without end and never reads gets no more of them."""
        self._requests += 1
        if self._requests == MAX_REPORTS + 1:
            self._violation("flood", f"more than {MAX_REPORTS} requests of its own; the rest is not answered")
        return message if self._requests <= MAX_REPORTS else None

    def _answer(self, value: dict[str, Any], message: Any) -> Any:
        number = request_id(value.get("id"))
        if number is None and message is None:
            return None  # no answer at all, and reported as that
        if number not in self.awaited:
            self._violation(self._why_unawaited(number), f"id {number!r}")
            return None
        if value["id"] != number:
            self._violation("changed_id", f"{value['id']!r} in the answer to {number!r}")
        if message is None:
            return self._malformed(number, value.get("result", value))
        if "error" in value:
            self.errors[number] = value["error"]
        self._settle(number)
        return message

    def _malformed(self, number: Any, result: Any) -> JSONRPCError:
        self.malformed[number] = result
        self._settle(number)
        return JSONRPCError(jsonrpc="2.0", id=number, error=MALFORMED)

    def _settle(self, number: Any) -> None:
        self.arrived_s[number] = self._line_s
        self.awaited.discard(number)
        self._answered.add(number)

    def _why_unawaited(self, number: Any) -> str:
        if number in self._answered:
            return "duplicate_reply"
        return "late_reply" if number in self._given_up else "reply_to_unknown_id"

    def _violation(self, what: str, detail: str) -> None:
        self._reports += 1
        if self._reports <= MAX_REPORTS:
            self._hooks.violation(what, detail)
        elif self._reports == MAX_REPORTS + 1:
            self._hooks.violation("flood", f"more than {MAX_REPORTS} breaches; the rest stands in the wire log only")

    async def aclose(self) -> None:
        """The channel belongs to whoever opened it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class FrameWriter:
    """What we say, one line per message, equal to the values that were given."""

    def __init__(self, channel: ServerChannel, awaited: set[Any]) -> None:
        self._channel, self._awaited = channel, awaited
        self._stuck = False

    async def send(self, item: SessionMessage, /) -> None:
        value = item.message.model_dump(by_alias=True, exclude_unset=True)
        if "method" in value and "id" in value:
            self._awaited.add(value["id"])
        elif self._stuck:
            return  # word that a request is cancelled would wait behind that request
        try:
            await self._channel.send(dump_text(value).encode())
        except anyio.get_cancelled_exc_class():
            self._stuck = True
            raise
        self._stuck = False

    async def aclose(self) -> None:
        """The channel belongs to whoever opened it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


@dataclass(frozen=True, slots=True)
class _Written:
    """What a line says."""

    value: Any = None
    """None without one."""
    exact: bool = False
    """Whether it is just what was sent."""
    breaches: tuple[tuple[str, str], ...] = ()


async def _read(line: bytes) -> _Written:
    return await to_thread.run_sync(_written, line) if len(line) > LONG else _written(line)


def _written(line: bytes) -> _Written:
    breaches = []
    try:
        text = line.decode()
    except UnicodeDecodeError as exc:
        breaches.append(("invalid_utf8", f"byte {exc.start}: {_shorten(line)}"))
        text = line.decode("utf-8", "replace")
    if _holds_too_many(line):
        return _Written(breaches=(*breaches, ("too_many_values", _shorten(line))))
    try:
        value, odd = _value(text)
    except (ValueError, RecursionError):
        return _Written(breaches=(*breaches, (_NOT_JSON, _shorten(line))))
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and deeper(value, MAX_DEPTH):
        return _Written(breaches=(*breaches, ("nested_too_deeply", _shorten(line))))
    if odd:
        breaches.append(("number_not_json", f"{odd[0]}: {_shorten(line)}"))
    elif not isinstance(value, dict):
        breaches.append(("malformed_message", f"not an object: {_shorten(line)}"))
    return _Written(value, not odd, tuple(breaches))


def _holds_too_many(line: bytes) -> bool:
    """Before they are made: brackets outside of strings, in time linear in the line whatever it is."""
    if line.count(b"[") + line.count(b"{") <= MAX_HELD:
        return False
    line = line.replace(rb"\\", b"").replace(rb"\"", b"")
    if line.count(b'"') > 2 * MAX_HELD:
        return True
    return sum(part.count(b"[") + part.count(b"{") for part in line.split(b'"')[::2]) > MAX_HELD


def request_id(value: Any) -> Any:
    """As the engine correlates it: `"7"` and 7 are one id, True is none."""
    number = as_request_id(value)
    return None if number is None else coerce_request_id(number)


def _value(text: str) -> tuple[Any, list[str]]:
    """A JSON value, with the numbers that JSON does not have (NaN) or no double holds (1e999): they become text."""
    odd: list[str] = []

    def constant(written: str) -> str:
        odd.append(written)
        return written

    def number(written: str) -> float | str:
        value = float(written)
        return value if math.isfinite(value) else constant(written)

    return json.loads(text, parse_constant=constant, parse_float=number), odd


def _shorten(line: bytes) -> str:
    return excerpt.beginning_of_bytes(line, _SHOWN)
