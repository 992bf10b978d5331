"""An endpoint on 127.0.0.1 that answers from a script, faults included, and keeps the exact bytes of each request."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Answer:
    """One scripted answer: a status with a body, or a fault of the connection."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: Literal["none", "reset", "silence"] = "none"


@dataclass(frozen=True)
class Request:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Scripted = Answer | Callable[[Request], Answer]
RESET = Answer(b"", fault="reset")
SILENCE = Answer(b"", fault="silence")


def answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON value as the body; underscores of header names stand for hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(json.dumps(value).encode(), status, named)


def completion(message: Any, finish_reason: str | None = "stop", **keys: Any) -> Answer:
    """A chat completion with one choice; `keys` stand beside it."""
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return answer({"id": "x", "object": "chat.completion", "model": "fake-1", "choices": [choice], **keys})


def text(content: str) -> Answer:
    return completion({"role": "assistant", "content": content})


def error(status: int, message: str, code: str | int | None = None, **headers: str) -> Answer:
    return answer({"error": {"message": message, "code": code}}, status, **headers)


class FakeOpenAI:
    """Answers requests in the order of the script; one request too many is answered with status 599."""

    def __init__(self, script: Iterable[Scripted]) -> None:
        self._script = iter(script)
        self.requests: list[Request] = []
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                scripted = next(self._script, Answer(b"script is over", 599))
                if not await _write_answer(writer, scripted(request) if callable(scripted) else scripted):
                    break
        finally:
            writer.close()


@asynccontextmanager
async def fake_openai(*script: Scripted) -> AsyncIterator[FakeOpenAI]:
    """The endpoint, until the block ends."""
    fake, serving = FakeOpenAI(script), set[asyncio.Task[None]]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(fake.serve(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield fake
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")[:-2]
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Request(first.split()[1], headers, await reader.readexactly(int(headers["content-length"])))


async def _write_answer(writer: asyncio.StreamWriter, reply: Answer) -> bool:
    """Whether the connection may be used again."""
    if reply.fault == "silence":
        await asyncio.Event().wait()
    if reply.fault == "reset":
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    headers = {"content-type": "application/json", "content-length": str(len(reply.body)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode() + reply.body)
    await writer.drain()
    return True
