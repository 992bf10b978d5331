"""Our loop's negotiated connection on a channel: the SDK's engine, with raw lists and raw results.

The engine correlates, times out and cancels; what counts is read from the wire. Its typed client would lose results
that break a schema, and one bad tool would cost the whole list.
"""

import itertools
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
from mcp import ClientSession, MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    DiscoverResult,
    Implementation,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcptrials.encoding import canonical_hash
from mcptrials.errors import ServerError, describe
from mcptrials.presentation import RawTool
from mcptrials.protocols import CallResult, ServerChannel, SessionHooks
from mcptrials.servers.background import background
from mcptrials.servers.frames import FrameReader, FrameWriter
from mcptrials.servers.listing import list_tools

Era = Literal["auto", "modern", "legacy"]
CLIENT_INFO = Implementation(name="mcptrials", version="0.1.0")
_FIRST_ID = 100
"""Our own request ids begin here, above those of the handshake: ids are never used twice (spec, basic)."""


@asynccontextmanager
async def open_session(
    server: str, channel: ServerChannel, hooks: SessionHooks, *, era: Era = "auto", connect_s: float = 30
) -> AsyncIterator["McpSession"]:
    """A negotiated session with its tools listed.

    Args:
        era: which protocol generation to speak; auto probes (modern first).
        connect_s: deadline for the handshake and all pages of the tool list.

    Raises:
        ServerError: server_start, with what the server said last on its stderr.
    """
    began = time.monotonic()
    reader, writer = FrameReader(channel, hooks), FrameWriter(channel)
    reader.awaited = writer.awaited
    engine = JSONRPCDispatcher(reader, writer)
    client = ClientSession(dispatcher=engine, client_info=CLIENT_INFO)
    async with background() as tasks:
        del tasks  # the group only unwraps what the client's own group raises
        async with client:
            session = McpSession(server, client, engine, reader)
            await _connect(session, channel, era, connect_s)
            session.startup_ms = (time.monotonic() - began) * 1000
            yield session


async def _connect(session: "McpSession", channel: ServerChannel, era: Era, connect_s: float) -> None:
    try:
        with anyio.fail_after(connect_s):
            await session.negotiate(era)
            await session.list()
    except TimeoutError as exc:
        what = f"did not finish the handshake and its tool list within {connect_s:g} s"
        raise ServerError("server_start", _with_stderr(session.server, what, channel)) from exc
    except MCPError as exc:
        lost = exc.code == CONNECTION_CLOSED and not session.answered_with_error
        what = "ended before the handshake was done" if lost else f"refused the handshake: {exc.code} {exc.message}"
        raise ServerError("server_start", _with_stderr(session.server, what, channel)) from exc
    except (ValidationError, RuntimeError) as exc:
        what = f"answered the handshake with a malformed result: {describe(exc)[:300]}"
        raise ServerError("server_start", _with_stderr(session.server, what, channel)) from exc


def _with_stderr(server: str, what: str, channel: ServerChannel) -> str:
    lines = [line.strip() for line in channel.stderr_tail().splitlines() if line.strip()]
    last = f"; last line of its stderr: {lines[-1][:300]}" if lines else "; its stderr is empty"
    return f"server {server!r} {what}{last}"


class McpSession:
    """See `protocols.ServerSession`."""

    def __init__(self, server: str, client: ClientSession, engine: JSONRPCDispatcher, reader: FrameReader) -> None:
        self.server = server
        self.tools: Sequence[RawTool] = ()
        self.problems: Sequence[str] = ()
        self.tools_hash = ""
        self.startup_ms = 0.0
        self._client, self._engine, self._reader = client, engine, reader
        self._ids = itertools.count(_FIRST_ID)

    @property
    def protocol_version(self) -> str | None:
        return self._client.protocol_version

    @property
    def era(self) -> Era:
        """What was negotiated, for pinning it in later sessions."""
        return "modern" if self._client.discover_result else "legacy"

    @property
    def name(self) -> str | None:
        info = self._client.server_info
        return info.name if info else None

    @property
    def version(self) -> str | None:
        info = self._client.server_info
        return info.version if info else None

    @property
    def instructions(self) -> str | None:
        return self._client.instructions

    @property
    def answered_with_error(self) -> bool:
        """Whether the server itself sent any JSON-RPC error."""
        return bool(self._reader.errors)

    async def negotiate(self, era: Era) -> None:
        if era == "legacy":
            await self._client.initialize()
        elif era == "modern":
            await self._client.discover()
        else:
            await self._probe(LATEST_MODERN_VERSION)

    async def _probe(self, version: str, *, again: bool = True) -> None:
        """Modern first; whatever is no positive evidence of it means legacy (spec, basic/versioning)."""
        try:
            found = DiscoverResult.model_validate(await self._client.send_discover(version))
        except MCPError as exc:
            mutual = _mutual_versions(exc)
            if mutual and again:
                return await self._probe(mutual[-1], again=False)
            if exc.code == CONNECTION_CLOSED and not self.answered_with_error:
                raise
        except ValidationError:
            pass
        else:
            if any(known in found.supported_versions for known in MODERN_PROTOCOL_VERSIONS):
                return self._client.adopt(found)
        await self._client.initialize()
        return None

    async def list(self) -> None:
        """Fetches all pages of the tool list."""
        listing = await list_tools(lambda params: self._send("tools/list", params, None))
        self.tools, self.problems = listing.tools, listing.problems
        self.tools_hash = canonical_hash(listing.tools)

    async def _send(self, method: str, params: dict[str, Any], timeout_s: float | None) -> Any:
        return await self._send_as(next(self._ids), method, params, timeout_s)

    async def _send_as(self, number: int, method: str, params: dict[str, Any], timeout_s: float | None) -> Any:
        options: CallOptions = {"request_id": number}
        if timeout_s is not None:
            options["timeout"] = timeout_s
        return await self._engine.send_raw_request(method, params | self._meta(), options)

    def _meta(self) -> dict[str, Any]:
        """Modern requests carry version, identity and capabilities each time (spec, basic)."""
        if not self._client.discover_result:
            return {}
        info = CLIENT_INFO.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {
            "_meta": {
                PROTOCOL_VERSION_META_KEY: self.protocol_version,
                CLIENT_INFO_META_KEY: info,
                CLIENT_CAPABILITIES_META_KEY: {},
            }
        }

    async def call(self, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        """One `tools/call`; whatever comes of it is a result, never an exception."""
        began = time.monotonic()
        number = next(self._ids)
        params = {"name": tool, "arguments": arguments}
        try:
            result = await self._send_as(number, "tools/call", params, timeout_s)
        except MCPError as exc:
            return self._failed(number, exc, _since(began))
        return CallResult(_status(result), _since(began), result)

    def _failed(self, number: int, exc: MCPError, ms: float) -> CallResult:
        """Tells what the server sent from what the engine made up: codes alone do not (spec, basic: -32000...)."""
        if number in self._reader.malformed:
            return CallResult("contract_violation", ms, self._reader.malformed[number])
        if number in self._reader.errors:
            return CallResult("protocol_error", ms, error=self._reader.errors[number])
        if exc.code == REQUEST_TIMEOUT:
            return CallResult("timeout", ms)
        return CallResult("transport_lost", ms)


def _since(began: float) -> float:
    return (time.monotonic() - began) * 1000


def _status(result: Any) -> Literal["ok", "tool_error", "contract_violation"]:
    if not isinstance(result, Mapping) or result.get("resultType", "complete") != "complete":
        return "contract_violation"
    if not isinstance(result.get("content"), list):
        return "contract_violation"
    return "tool_error" if result.get("isError") is True else "ok"


def _mutual_versions(exc: MCPError) -> list[str]:
    data = exc.error.data
    supported = data.get("supported") if exc.code == UNSUPPORTED_PROTOCOL_VERSION and isinstance(data, dict) else None
    return [known for known in MODERN_PROTOCOL_VERSIONS if isinstance(supported, list) and known in supported]
