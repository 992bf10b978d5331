"""Streams of events, however they are cut into pieces."""

from collections.abc import AsyncIterator
from itertools import pairwise

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptrials.errors import ServerError
from mcptrials.servers.sse import ServerSentEvent, read_events

STREAM = (
    b': a comment\n\nid: 1\ndata: \n\nevent: message\r\ndata: {"a":\r\ndata:1}\r\n\r\n'
    b"retry: 250\rid: 2\rdata: caf\xc3\xa9\xff\r\rdata: cut off"
)
EVENTS = [
    ServerSentEvent("message", b"", "1", None),
    ServerSentEvent("message", b'{"a":\n1}', None, None),
    ServerSentEvent("message", b"caf\xc3\xa9\xff", "2", 0.25),
]


def read(chunks: list[bytes], max_bytes: int = 1000) -> list[ServerSentEvent]:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def all_events() -> list[ServerSentEvent]:
        return [event async for event in read_events(stream(), max_bytes)]

    return anyio.run(all_events)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[start:end] for start, end in pairwise(ends)]) == EVENTS


def test_an_event_that_is_too_large_is_refused_before_it_ends() -> None:
    with pytest.raises(ServerError, match="one event is larger"):
        read([b"data: " + b"x" * 600] * 2)
