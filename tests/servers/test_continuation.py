"""A connection is taken up where its host left it: nothing negotiated again, no id used twice, nobody else's answer."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.servers.talking import Wire, faulty
from tests.servers.test_sdk_eras import library

from mcptrials.protocols import Place, SessionHooks
from mcptrials.servers.session import Era, continue_session, open_session
from mcptrials.servers.spoken import Overheard, Spoken
from mcptrials.servers.stdio import StdioServer

pytestmark = pytest.mark.anyio
UNHEARD = SessionHooks(lambda *_: None, lambda *_: None)
META = "io.modelcontextprotocol/"


def overheard(*messages: Any) -> Spoken:
    """What is known after these were said."""
    heard = Overheard(Wire())
    for message in messages:
        heard.frame("out", 0, message if isinstance(message, bytes) else json.dumps(message).encode())
    return heard.spoken


def request(number: Any, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("kind", ["faulty", "sdk"])
async def test_a_connection_goes_on_in_its_generation_with_ids_of_its_own(kind: str, era: Era, tmp_path: Path) -> None:
    server: StdioServer = faulty() if kind == "faulty" else library(2, tmp_path)
    tool, given = ("add", {"a": 1, "b": 2}) if kind == "faulty" else ("pages", {"title": "Emma"})
    wire = Wire()
    heard = Overheard(wire)
    with anyio.fail_after(30):
        async with server.open(Place(tmp_path, tmp_path, lambda _: heard)) as channel:
            async with open_session(server.name, channel, UNHEARD, era=era) as session:
                first = await session.call(tool, given, 10)
            for _ in range(2):
                async with continue_session(server.name, channel, heard.spoken) as session:
                    again = await session.call(tool, given, 10)
                    assert (again.status, again.result) == ("ok", first.result)
    sent = [json.loads(line) for direction, line in wire.frames if direction == "out"]
    ids = [each["id"] for each in sent if "id" in each]
    assert ids == sorted(set(ids))
    methods = [each["method"] for each in sent]
    assert methods[-3:] == ["tools/call"] * 3
    metas = [params.get("_meta") for params in wire.sent("tools/call")]
    assert metas[0] == metas[1] == metas[2]
    assert (metas[0] is not None) == (era == "modern")


async def test_noise_and_late_answers_do_not_disturb_it(tmp_path: Path) -> None:
    server, heard = faulty(), Overheard(Wire())
    with anyio.fail_after(20):
        async with server.open(Place(tmp_path, tmp_path, lambda _: heard)) as channel:
            async with open_session(server.name, channel, UNHEARD) as session:
                late = await session.call("misbehave", {"fault": "late", "value": "0.3"}, 0.1)
                assert late.status == "timeout"
            async with continue_session(server.name, channel, heard.spoken) as session:
                for fault in ("noise", "flood", "ask", "duplicate"):
                    given = await session.call("misbehave", {"fault": fault, "value": "3"}, 10)
                    assert given.status == "ok"


def test_the_next_id_is_above_every_one_that_was_used() -> None:
    assert overheard().next_id == 1
    assert overheard(request(7), request(3)).next_id == 8
    assert overheard(request("12"), request("a-99"), request(1.5), request(None), request("9" * 40)).next_id == 13
    answer = {"jsonrpc": "2.0", "id": 5000, "result": {}}
    assert overheard(request(1), answer, {"method": "notifications/cancelled", "params": {"requestId": 9}}).next_id == 2


def test_what_is_no_message_is_passed_on_and_says_nothing() -> None:
    assert overheard(b"\xff\xfe", b"[1]", b"3", b"", b"[" * 100_000, request(4)) == Spoken(5, {})


def test_identity_and_version_are_those_of_the_last_request() -> None:
    identity = {f"{META}protocolVersion": "2026-07-28", f"{META}clientInfo": {"name": "host"}}
    modern = request(1, _meta=identity | {"progressToken": 1, "traceparent": "x", f"{META}related-task": {}})
    assert overheard(modern).meta == identity
    assert overheard(modern, {"method": "notifications/x", "params": {}}).meta == identity
    assert overheard(modern, request(2)).meta == {}
    assert (
        overheard({"id": 1, "method": "x", "params": [1]}, {"id": 2, "method": "x", "params": {"_meta": 3}}).meta == {}
    )
