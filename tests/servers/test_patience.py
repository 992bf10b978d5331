"""Time limits of servers, while our own event loop has other things to do."""

import json
import time
from pathlib import Path

import anyio
import pytest
from tests.servers.talking import faulty, python, talking

pytestmark = pytest.mark.anyio

SPOKEN = """
import os, sys
from mcptrials.servers import faulty
def call(self, number, name, given, *_):
    os.write(1, WRITES)
    os._exit(CODE)
faulty.Faulty.call = call
faulty.main([])
"""


async def stand_still(seconds: float) -> None:
    """As a trial with a very long result may make the loop do, once the others wait."""
    await anyio.sleep(0.05)
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point


async def test_an_answer_that_waits_to_be_read_is_not_late(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk, anyio.create_task_group() as tasks:
            tasks.start_soon(stand_still, 0.8)
            answer = await talk.session.call("wait", {"seconds": 0.2}, 0.5)
    assert answer.status == "ok"


async def test_a_server_that_is_silent_for_its_time_is_late_though_the_loop_stood_still(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk, anyio.create_task_group() as tasks:
            tasks.start_soon(stand_still, 0.5)
            answer = await talk.session.call("misbehave", {"fault": "hang"}, 0.4)
    assert answer.status == "timeout"
    assert 800 <= answer.ms < 5000


async def test_a_server_is_not_charged_for_a_start_while_the_loop_stood_still(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stand_still, 2.5)
            async with talking(faulty(), tmp_path, connect_s=2) as talk:
                assert talk.session.tools


async def test_a_long_answer_is_timed_to_its_end_and_logged_whole(tmp_path: Path) -> None:
    """Reading it takes its time, but that is ours."""
    with anyio.fail_after(30):
        async with talking(faulty(), tmp_path) as talk:
            answer = await talk.session.call("misbehave", {"fault": "huge", "value": "2"}, 10)
            fine = await talk.session.call("echo", {"text": "next"}, 10)
            logged = [line for direction, line in talk.wire.frames if direction == "in"]
    assert (answer.status, fine.status) == ("ok", "ok")
    assert [len(line) > 2 << 20 for line in logged[-2:]] == [True, False]
    assert json.loads(logged[-2])["result"] == answer.result


async def test_breaches_of_a_long_line_are_told_like_those_of_a_short_one(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with talking(faulty(), tmp_path) as talk:
            answer = await talk.session.call("misbehave", {"fault": "deep", "value": "200000"}, 10)
    assert answer.status == "contract_violation"
    assert len(talk.breaches) == 1
    assert talk.breaches[0] in ("nested_too_deeply", "stdout_not_json")


HALVES = {
    "nothing": "b''",
    "half an answer": 'b\'{"jsonrpc":"2.0","id":%d,"result":{"content":[\' % number',
    "half an answer as a line": 'b\'{"jsonrpc":"2.0","id":%d,"result":\\n\' % number',
    "no answer": "b'Traceback (most recent call last):\\n'",
    "a malformed answer": 'b\'{"jsonrpc":"2.0","id":%d,"result":5}\\n\' % number',
}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("writes", HALVES)
async def test_a_server_that_ends_in_a_call_is_lost_whatever_it_wrote(writes: str, code: int, tmp_path: Path) -> None:
    program = SPOKEN.replace("WRITES", HALVES[writes]).replace("CODE", str(code))
    with anyio.fail_after(20):
        async with talking(python(program), tmp_path) as talk:
            answer = await talk.session.call("echo", {"text": "x"}, 10)
    assert answer.status == "transport_lost"
    assert answer.ms < 5000


MANY_VALUES = 1 << 20
MANY = """
import sys
from mcptrials.servers import faulty
def call(self, number, name, given, *_):
    value = open("ANSWERS", "rb").read().splitlines()[int(given["text"])]
    sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":%s}}\\n' % (number, value))
    sys.stdout.flush()
    return []
faulty.Faulty.call = call
faulty.main([])
"""


async def test_an_answer_of_a_million_values_is_refused_before_they_are_made(tmp_path: Path) -> None:
    """Three bytes of it would take 70 of memory; brackets and quotes in a text take no more than they are."""
    made = {
        "[" + "{}," * MANY_VALUES + "0]": "contract_violation",
        "[" + "[]," * MANY_VALUES + "0]": "contract_violation",
        "[" + '[""],' * MANY_VALUES + "0]": "contract_violation",
        '"' + r"{[ \\ \" " * MANY_VALUES + '"': "ok",
    }
    (tmp_path / "answers").write_text("\n".join(made))
    with anyio.fail_after(30):
        async with talking(python(MANY.replace("ANSWERS", str(tmp_path / "answers"))), tmp_path) as talk:
            found = [(await talk.session.call("echo", {"text": str(number)}, 20)).status for number in range(len(made))]
    assert found == [*made.values()]
    assert talk.breaches == ["too_many_values"] * 3
