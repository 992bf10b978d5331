"""Our loop's negotiated connection on a channel: the SDK's engine, with raw lists and raw results.

The engine correlates, times out and cancels; what counts is read from the wire. Its typed client would lose results
that break a schema, and one bad tool would cost the whole list.
"""

import itertools
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from mcp import ClientSession, MCPError
from mcp.shared.dispatcher import CallOptions
from mcp_types import (
    UNSUPPORTED_PROTOCOL_VERSION,
    DiscoverResult,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcptrials import excerpt
from mcptrials.encoding import canonical_hash
from mcptrials.errors import ServerError
from mcptrials.presentation import RawTool
from mcptrials.protocols import CallResult, ServerChannel, SessionHooks, unheard
from mcptrials.servers.asking import NOBODY, Asking, Client, asks_for_input
from mcptrials.servers.background import background, bare
from mcptrials.servers.engine import CLIENT_INFO, Engine, declaring, modern_meta
from mcptrials.servers.frames import MALFORMED, FrameReader, FrameWriter
from mcptrials.servers.listing import list_tools
from mcptrials.servers.overstepped import ended_how
from mcptrials.servers.patience import patience
from mcptrials.servers.spoken import Spoken

Era = Literal["auto", "modern", "legacy"]
_FIRST_ID = 100
"""Our own request ids begin here, above those of the handshake: ids are never used twice (spec, basic)."""
_PROBE_SHARE = 1 / 3
"""Of the time to connect, for a server that does not answer the modern probe; the rest is for the legacy handshake."""
MAX_ROUNDS = 10
"""Of input that one call may ask for, as the SDK's own client has it."""
_GOODBYE_S = 1.0
"""For telling a server that a call is over; one that does not read must not hold that up."""
_LAST_WORDS_S = 0.2
"""For the end of a server whose last words are no answer."""

_SHOWN = 300
"""Characters that an error quotes of what a server said."""


@asynccontextmanager
async def open_session(
    server: str,
    channel: ServerChannel,
    hooks: SessionHooks,
    *,
    era: Era = "auto",
    connect_s: float = 30,
    client: Client = NOBODY,
) -> AsyncIterator["McpSession"]:
    """A negotiated session with its tools listed.

    Args:
        era: which protocol generation to speak; auto probes (modern first).
        connect_s: deadline for the handshake and all pages of the tool list.
        client: what the server may ask of its client.

    Raises:
        ServerError: server_start, with what the server said of it on its stderr.
    """
    began = time.monotonic()
    async with _speaking(server, channel, hooks, client) as session, background() as tasks:
        await _connect(session, channel, era, connect_s)
        session.startup_ms = (time.monotonic() - began) * 1000
        if client.listens:
            tasks.start_soon(session.listen)
        yield session


@asynccontextmanager
async def continue_session(server: str, channel: ServerChannel, spoken: Spoken) -> AsyncIterator["McpSession"]:
    """The connection that a host negotiated and left, taken up again: no second handshake, ids that were never used.

    What the server says besides answering concerns nobody any more; it stands in the wire log.
    """
    async with _speaking(server, channel, SessionHooks(unheard, unheard), NOBODY) as session:
        session.take_up(spoken)
        yield session


@asynccontextmanager
async def _speaking(
    server: str, channel: ServerChannel, hooks: SessionHooks, client: Client
) -> AsyncIterator["McpSession"]:
    reader, asking = FrameReader(channel, hooks), Asking(client.policy, hooks, client.trial_dir)
    engine = Engine(reader, FrameWriter(channel, reader.awaited), asking)
    sdk = ClientSession(dispatcher=engine, client_info=CLIENT_INFO, **declaring(asking.capabilities))
    with bare():
        async with sdk:
            yield McpSession(server, sdk, engine, reader, hooks)


async def _connect(session: "McpSession", channel: ServerChannel, era: Era, connect_s: float) -> None:
    try:
        with session.patience(connect_s):
            await session.negotiate(era, connect_s)
            await session.list()
    except TimeoutError:
        what = f"did not answer {session.step} within {connect_s:g} s"
    except MCPError as exc:
        what = await session.why_failed(exc, channel)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = f"answered {session.step} with a malformed result: {place}: {first['msg']}"
    except RuntimeError as exc:
        what = f"answered {session.step} with what cannot be used: {exc}"
    else:
        return
    session.refuse_foreign_fault()
    raise ServerError("server_start", f"server {session.server!r} {what}{_last_words(channel)}")


def _last_words(channel: ServerChannel) -> str:
    stderr = channel.stderr_tail()
    if stderr is None:
        return ""
    why = excerpt.telling(stderr, _SHOWN)
    return f"; its stderr says: {why}" if why else "; its stderr is empty"


class McpSession:
    """See `protocols.ServerSession`."""

    def __init__(
        self, server: str, client: ClientSession, engine: Engine, reader: FrameReader, hooks: SessionHooks
    ) -> None:
        self.server = server
        self.tools: Sequence[RawTool] = ()
        self.problems: Sequence[str] = ()
        self.tools_hash = ""
        self.startup_ms = 0.0
        self.step = "the handshake"
        """What of connecting is being done."""
        self._client, self._engine, self._reader, self._hooks = client, engine, reader, hooks
        self._asking = engine.asking
        self._ids = itertools.count(_FIRST_ID)
        self._taken_up: Spoken | None = None

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
    def capabilities(self) -> Mapping[str, Any]:
        return self._asking.capabilities

    @property
    def list_changed(self) -> bool:
        return self._reader.list_changed

    def take_up(self, spoken: Spoken) -> None:
        """Goes on as whoever spoke before."""
        self._taken_up, self._ids = spoken, itertools.count(spoken.next_id)

    async def negotiate(self, era: Era, connect_s: float) -> None:
        if era == "legacy":
            await self._client.initialize()
        elif era == "modern":
            self._client.adopt(await self._discover(LATEST_MODERN_VERSION))
        else:
            await self._find_era(connect_s * _PROBE_SHARE)

    async def _find_era(self, patience_s: float) -> None:
        """Modern first; whatever is no positive evidence of it means legacy (spec, basic/versioning).

        An error that names a version in common is such evidence, also from `initialize`: then the server had read the
        probe, only too late for us.
        """
        version = LATEST_MODERN_VERSION
        for attempt in (1, 2):
            try:
                if not await self._probe(version, patience_s):
                    await self._client.initialize()
            except MCPError as exc:
                mutual = _mutual_versions(exc)
                if attempt == 2 or not mutual:  # noqa: PLR2004 - the last
                    raise
                version = mutual[-1]
            else:
                return

    async def _probe(self, version: str, patience_s: float) -> bool:
        """Whether the server speaks the modern protocol."""
        try:
            with self.patience(patience_s):
                found = await self._discover(version)
        except (TimeoutError, ValidationError):
            self._reader.give_up()
            return False
        except MCPError as exc:
            if self._reader.ended.is_set() or _mutual_versions(exc):
                raise
            return False
        modern = any(known in found.supported_versions for known in MODERN_PROTOCOL_VERSIONS)
        if modern:
            self._client.adopt(found)
        return modern

    async def _discover(self, version: str) -> DiscoverResult:
        options: CallOptions = {"request_id": next(self._ids), "cancel_on_abandon": False}  # spec, basic: cancellation
        result = await self._engine.send_raw_request(
            "server/discover", {"_meta": modern_meta(version, self.capabilities)}, options
        )
        # How long the answer may be cached does not matter here, nor whether that is well said.
        return DiscoverResult.model_validate(result | {"ttlMs": 0, "cacheScope": "private"})

    async def list(self) -> None:
        """Fetches all pages of the tool list."""
        self.step, self._reader.list_changed = "tools/list", False
        listing = await list_tools(lambda params: self._request("tools/list", params, {"request_id": next(self._ids)}))
        self.tools, self.problems = listing.tools, listing.problems
        self.tools_hash = canonical_hash(listing.tools)

    async def refresh(self, timeout_s: float) -> str | None:
        try:
            with self.patience(timeout_s):
                await self.list()
        except TimeoutError:
            return f"its changed tool list did not come within {timeout_s:g} s"
        except MCPError as exc:
            return f"its changed tool list did not come: {exc.code} {excerpt.beginning(exc.message, _SHOWN)}"
        return None

    async def listen(self) -> None:
        """Modern servers tell that their list changed on a stream that was asked for (spec, basic/utilities)."""
        capabilities = self._client.server_capabilities
        tools = capabilities.tools if capabilities else None
        if self.era == "modern" and tools is not None and tools.list_changed:
            params = {"notifications": {"toolsListChanged": True}}
            with suppress(MCPError):  # a server that takes no subscriptions has a list that stays
                await self._request(
                    "subscriptions/listen", params, {"request_id": next(self._ids), "cancel_on_abandon": False}
                )

    def refuse_foreign_fault(self) -> None:
        """Raises:
        HarnessError: what ended the channel is not the server's fault: a token that has expired, say.
        """
        if self._reader.failure and not isinstance(self._reader.failure, ServerError):
            raise self._reader.failure

    async def why_failed(self, exc: MCPError, channel: ServerChannel) -> str:
        """What went wrong in connecting: what the server sent is told from what the engine made up."""
        if self._reader.failure:
            return f"broke off {self.step}: {self._reader.failure.message}"
        if exc.error.message == MALFORMED.message:
            answer = [*self._reader.malformed.values()][-1]
            return f"answered {self.step} with what is no valid response: {excerpt.beginning(repr(answer), _SHOWN)}"
        sent = [each.get("message") for each in self._reader.errors.values() if isinstance(each, dict)]
        if exc.message in sent:
            return f"refused {self.step}: {exc.code} {exc.message}"
        code = await channel.settle()
        how = "closed its output" if code is None else ended_how(code)
        return f"{how} before {self.step} was done"

    async def _request(self, method: str, params: dict[str, Any], options: CallOptions) -> Any:
        meta = self._meta()
        return await self._engine.send_raw_request(method, params | ({"_meta": meta} if meta else {}), options)

    def _meta(self) -> Mapping[str, Any]:
        if self._taken_up is not None:
            return self._taken_up.meta
        version = self.protocol_version
        return modern_meta(version, self.capabilities) if version and self._client.discover_result else {}

    async def call(self, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        """One `tools/call`; what comes of it is a result, also a refusal, a silence or the server's end.

        Raises:
            ServerError: crash or contract_violation, when what the server writes cannot be read any further.
            HarnessError: auth or rate_limit, when it refuses us.
        """
        asked = _Asked({"name": tool, "arguments": arguments}, time.monotonic())
        try:
            with self.patience(timeout_s):
                result = await self._completed(asked)
        except MCPError as exc:
            return await self._failed(asked.number, exc, asked.began_s)
        except TimeoutError:
            ms = self._ms(asked.number, asked.began_s)
            await self._give_up_on(asked.number, timeout_s)
            return CallResult("timeout", ms)
        if asked.refused is not None:
            return CallResult("input_required", self._ms(asked.number, asked.began_s), result, error=asked.refused)
        return CallResult(self._status(result), self._ms(asked.number, asked.began_s), result)

    async def _completed(self, asked: "_Asked") -> Any:
        """The result of a call, after the server got what it asked for on the way (spec, basic/patterns/mrtr)."""
        params = asked.params
        for _ in range(MAX_ROUNDS):
            asked.number = next(self._ids)
            options: CallOptions = {"request_id": asked.number, "cancel_on_abandon": False}
            result = await self._request("tools/call", params, options)
            if not (self._meta() and asks_for_input(result)):
                return result
            answers, asked.refused = self._asking.inputs(result.get("inputRequests") or {})
            if asked.refused is not None:
                return result
            params = asked.params | {"inputResponses": answers} if answers else asked.params
            if "requestState" in result:
                params = params | {"requestState": result["requestState"]}
        asked.refused = f"it asked for input more than {MAX_ROUNDS} times"
        self._hooks.violation("endless_input", asked.refused)
        return result

    async def _give_up_on(self, number: int, timeout_s: float) -> None:
        self._reader.give_up_on(number)
        with anyio.move_on_after(_GOODBYE_S):
            told = {"requestId": number, "reason": f"timed out after {timeout_s:g} s"}
            await self._engine.notify("notifications/cancelled", told)

    def patience(self, timeout_s: float) -> AbstractContextManager[None]:
        return patience(timeout_s, lambda: self._reader.busy)

    def _ms(self, number: int, began_s: float) -> float:
        """Until the answer had come; what it took us to read it is not the server's."""
        return (self._reader.arrived_s.pop(number, time.monotonic()) - began_s) * 1000

    def _status(self, result: Mapping[str, Any]) -> Literal["ok", "tool_error", "contract_violation"]:
        kind = result.get("resultType", "complete")
        if kind == "complete" and isinstance(result.get("content"), list):
            return "tool_error" if result.get("isError") is True else "ok"
        what = "has no list 'content'" if kind == "complete" else f"is of type {excerpt.beginning(repr(kind), _SHOWN)}"
        self._hooks.violation("malformed_result", f"a tools/call result {what}")
        return "contract_violation"

    async def _failed(self, number: int, exc: MCPError, began_s: float) -> CallResult:
        """Tells what the server sent from what the engine made up: codes alone do not (spec, basic: -32000...).

        A server that writes half an answer and ends has not answered.
        """
        ms = self._ms(number, began_s)
        if number in self._reader.malformed:
            with anyio.move_on_after(_LAST_WORDS_S):
                await self._reader.ended.wait()
            if not self._reader.ended.is_set():
                return CallResult("contract_violation", ms, self._reader.malformed[number])
        if self._reader.failure:
            raise self._reader.failure
        if number in self._reader.errors:
            return CallResult("protocol_error", ms, error=self._reader.errors[number])
        self._reader.give_up_on(number)
        return CallResult("transport_lost", ms)


@dataclass
class _Asked:
    """A call on its way: the params of its first request, and the id of the last."""

    params: dict[str, Any]
    began_s: float
    number: int = 0
    refused: str | None = None
    """Why the server did not get what it asked for."""


def _mutual_versions(exc: MCPError) -> list[str]:
    data = exc.error.data
    supported = data.get("supported") if exc.code == UNSUPPORTED_PROTOCOL_VERSION and isinstance(data, dict) else None
    return [known for known in MODERN_PROTOCOL_VERSIONS if isinstance(supported, list) and known in supported]
