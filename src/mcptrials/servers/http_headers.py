"""The headers in which each message over HTTP repeats what it is (spec, basic/transports/streamable-http)."""

from collections.abc import Mapping
from typing import Any

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import PROTOCOL_VERSION_META_KEY

SESSION_HEADER = "mcp-session-id"
_ACCEPT = {"accept": "application/json, text/event-stream", "accept-encoding": "identity"}


class MessageHeaders:
    """What one connection knows of its session, and of the arguments that its tools want to see in headers."""

    def __init__(self) -> None:
        self.session_id: str | None = None
        self._version: str | None = None
        self._mirrored: dict[str, dict[tuple[str, ...], str]] = {}

    def of(self, message: Mapping[str, Any]) -> dict[str, str]:
        """For a message to be posted."""
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        headers = _ACCEPT | {"content-type": "application/json"}
        modern = modern_version(message)
        if modern:
            return headers | {MCP_PROTOCOL_VERSION_HEADER: modern} | self._routing(str(method), params)
        return headers if method == "initialize" else headers | self.of_session()

    def of_session(self) -> dict[str, str]:
        """What tells the server which session a request belongs to; legacy era only."""
        known = {SESSION_HEADER: self.session_id, MCP_PROTOCOL_VERSION_HEADER: self._version}
        return {name: value for name, value in known.items() if value is not None}

    def of_stream(self, last_event_id: str | None) -> dict[str, str]:
        """For asking for a stream of events, from its beginning or after an event."""
        headers = self.of_session() | {"accept": "text/event-stream", "accept-encoding": "identity"}
        return headers if last_event_id is None else headers | {"last-event-id": last_event_id}

    def _routing(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = {MCP_METHOD_HEADER: method}
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = _encoded(name)
        if method == "tools/call" and isinstance(params.get("arguments"), dict):
            headers |= mcp_param_headers(self._mirrored.get(str(name), {}), params["arguments"])
        return headers

    def learn(self, message: Mapping[str, Any], result: Any, headers: Mapping[str, str]) -> None:
        """Takes from an answer what later messages must repeat."""
        if not isinstance(result, dict):
            return
        if message.get("method") == "initialize":
            self._version = _sendable(result.get("protocolVersion"))
            self.session_id = _sendable(headers.get(SESSION_HEADER))
        elif message.get("method") == "tools/list" and modern_version(message):
            tools = result.get("tools")
            for tool in tools if isinstance(tools, list) else ():
                self._learn_tool(tool)

    def _learn_tool(self, tool: Any) -> None:
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        if isinstance(schema, dict) and find_invalid_x_mcp_header(schema) is None:
            self._mirrored[str(tool.get("name"))] = x_mcp_header_map(schema)


def modern_version(message: Mapping[str, Any]) -> str | None:
    """The protocol version that a message of the modern era carries."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _sendable(value: Any) -> str | None:
    """Visible ASCII, as the specification demands; nothing else can be sent back."""
    return value if isinstance(value, str) and value.isascii() and value.isprintable() and value.strip() else None


def _encoded(name: str) -> str:
    """A model may ask for a tool by any name; a lone surrogate has no UTF-8 form."""
    return encode_header_value(name.encode("utf-8", "replace").decode())
