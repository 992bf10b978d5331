"""The SDK's stream pair over a channel, where every line is looked at before the engine sees it."""

from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, jsonrpc_message_adapter
from mcp_types.jsonrpc import ErrorData
from pydantic import ValidationError

from mcptrials.encoding import dump_text, parse_json
from mcptrials.protocols import ServerChannel, SessionHooks

_MALFORMED = ErrorData(code=-32603, message="malformed response")
_SHOWN = 300


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
        self._answered: set[Any] = set()

    async def __anext__(self) -> SessionMessage:
        while True:
            try:
                line = await self._channel.receive()
            except EOFError:
                raise StopAsyncIteration from None
            message = self._message(line)
            if message is not None:
                return SessionMessage(message)

    async def receive(self) -> SessionMessage:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    def _message(self, line: bytes) -> Any:
        value = self._parse(line)
        if not isinstance(value, dict):
            return None
        self._note(value)
        try:
            return jsonrpc_message_adapter.validate_python(value, by_name=False)
        except ValidationError as exc:
            self._hooks.violation("malformed_message", f"{exc.errors()[0]['msg']}: {_shorten(line)}")
        number = value.get("id")
        if "method" in value or not isinstance(number, str | int) or number not in self._answered:
            return None
        self.malformed[number] = value.get("result", value)
        return JSONRPCError(jsonrpc="2.0", id=number, error=_MALFORMED)

    def _parse(self, line: bytes) -> Any:
        try:
            text = line.decode()
        except UnicodeDecodeError as exc:
            self._hooks.violation("invalid_utf8", f"byte {exc.start}: {_shorten(line)}")
            text = line.decode("utf-8", "replace")
        try:
            value = parse_json(text)
        except (ValueError, RecursionError):
            self._hooks.violation("stdout_not_json", _shorten(line))
            return None
        if not isinstance(value, dict):
            self._hooks.violation("malformed_message", f"not an object: {_shorten(line)}")
        return value

    def _note(self, value: dict[str, Any]) -> None:
        method, number = value.get("method"), value.get("id")
        if isinstance(method, str):
            if "id" not in value:
                self._hooks.notification(method, value.get("params"))
            return
        if not isinstance(number, str | int):
            return
        if number in self.awaited:
            self.awaited.discard(number)
            self._answered.add(number)
            if "error" in value:
                self.errors[number] = value["error"]
        else:
            what = "duplicate_reply" if number in self._answered else "reply_to_unknown_id"
            self._hooks.violation(what, f"id {number!r}")

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

    def __init__(self, channel: ServerChannel) -> None:
        self._channel = channel
        self.awaited: set[Any] = set()

    async def send(self, item: SessionMessage, /) -> None:
        value = item.message.model_dump(by_alias=True, exclude_unset=True)
        if "method" in value and "id" in value:
            self.awaited.add(value["id"])
        await self._channel.send(dump_text(value).encode())

    async def aclose(self) -> None:
        """The channel belongs to whoever opened it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _shorten(line: bytes) -> str:
    text = line[:_SHOWN].decode("utf-8", "replace")
    return text if len(line) <= _SHOWN else f"{text}... ({len(line)} bytes)"
