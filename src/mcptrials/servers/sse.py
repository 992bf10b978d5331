"""Server-sent events, parsed from bytes in time linear to their size (HTML standard, 9.2.6)."""

from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass

from mcptrials.errors import ServerError


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event; without data it only marks a place in the stream, to go on from."""

    kind: str
    data: bytes
    id: str | None
    retry_s: float | None


async def read_events(chunks: AsyncIterable[bytes], max_bytes: int) -> AsyncGenerator[ServerSentEvent]:
    """The events of a stream; one that the stream's end cuts off is none.

    Raises:
        ServerError: contract_violation, when an event is larger than `max_bytes`.
    """
    lines, event = _Lines(), _Fields()
    async for chunk in chunks:
        for line in lines.feed(chunk):
            if line:
                event.add(line)
            elif event.any:
                yield event.taken()
                event = _Fields()
        if lines.waiting + event.size > max_bytes:
            raise ServerError("contract_violation", f"one event is larger than {max_bytes >> 20} MiB")


class _Lines:
    """Cuts chunks into lines, which end in LF, CR LF or CR."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_cr = False

    @property
    def waiting(self) -> int:
        return len(self._rest)

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ended, rest = chunk.split(b"\n")
        if not ended:
            self._rest += rest
            return []
        ended[0] = bytes(self._rest) + ended[0]
        self._rest = bytearray(rest)
        return ended


class _Fields:
    """The lines of one event."""

    def __init__(self) -> None:
        self.any = False
        self.size = 0
        self._kind = "message"
        self._data: list[bytes] = []
        self._id: str | None = None
        self._retry_s: float | None = None

    def add(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self.size += len(line)
        self.any = self.any or name in (b"data", b"event", b"id", b"retry")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self._retry_s = int(value[:9]) / 1000

    def taken(self) -> ServerSentEvent:
        return ServerSentEvent(self._kind, b"\n".join(self._data), self._id, self._retry_s)
