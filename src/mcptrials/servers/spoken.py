"""What was said to a server on its channel: as much as whoever takes up the connection has to know."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcptrials.protocols import WireLog

_IDENTITY = ("protocolVersion", "clientInfo", "clientCapabilities")
_META = {f"io.modelcontextprotocol/{name}" for name in _IDENTITY}
"""What modern requests carry each time (spec, basic); the rest of `_meta` belongs to one request."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Where a conversation stands."""

    next_id: int
    """A request id that was never used on the connection, as neither were those above it."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Version, identity and capabilities as the last request gave them; empty in the legacy generation."""


class Overheard:
    """A wire log that notes on the way what is said to the server, by whatever host."""

    def __init__(self, wire: WireLog) -> None:
        self._wire = wire
        self._highest_id = 0
        self._meta: Mapping[str, Any] = {}
        self.silent = True
        """Whether no request was made."""

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None:
        if direction == "out":
            self._note(line)
        self._wire.frame(direction, at_s, line)

    def close(self) -> None:
        self._wire.close()

    @property
    def spoken(self) -> Spoken:
        return Spoken(self._highest_id + 1, self._meta)

    def _note(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return  # a host may write what it wants; that is the server's to refuse
        if not isinstance(message, dict) or "method" not in message or "id" not in message:
            return
        self.silent = False
        self._highest_id = max(self._highest_id, _number(message["id"]))
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        self._meta = {key: meta[key] for key in meta if key in _META} if isinstance(meta, dict) else {}


def _number(value: Any) -> int:
    """An id as a number, since `"7"` and 7 are one id to many; other ids are in nobody's way."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(1 << 53)):
        return int(value)
    return value if isinstance(value, int) else 0
