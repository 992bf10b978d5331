"""A negotiated session: both protocol generations, the whole tool list, and a name for everything that can go wrong."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.servers.talking import Talk, Wire, faulty, place, python, talking

from mcptrials.errors import IncompleteError, ServerError
from mcptrials.protocols import CallResult, SessionHooks
from mcptrials.servers.session import Era, open_session

pytestmark = pytest.mark.anyio

NAMES = ["echo", "add", "fail", "wait", "remember", "recall", "environment", "misbehave"]
FINE = {"content": [{"type": "text", "text": "fine"}]}


async def misbehave(talk: Talk, fault: str, value: str = "", timeout_s: float = 10) -> CallResult:
    return await talk.session.call("misbehave", {"fault": fault, "value": value}, timeout_s)


async def refused(folder: Path, *faults: str, era: Era = "auto", connect_s: float = 10) -> str:
    """Why a session with a server cannot be opened."""
    with anyio.fail_after(20), pytest.raises(ServerError) as caught:
        async with talking(faulty(*faults), folder, era=era, connect_s=connect_s):
            pass
    assert caught.value.cause == "server_start"
    return caught.value.message


# --- Negotiation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speaks", "era", "version"),
    [
        ("both", "auto", "2026-07-28"),
        ("both", "modern", "2026-07-28"),
        ("both", "legacy", "2025-11-25"),
        ("modern", "auto", "2026-07-28"),
        ("modern", "modern", "2026-07-28"),
        ("legacy", "auto", "2025-11-25"),
        ("legacy", "legacy", "2025-11-25"),
    ],
)
async def test_each_generation_is_found_or_pinned(speaks: str, era: Era, version: str, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(era=speaks), tmp_path, era=era) as talk:
            session = talk.session
            assert (session.protocol_version, session.name, session.version) == (version, "faulty", "1.0")
            assert session.instructions == "Ask."
            assert session.era == ("legacy" if version == "2025-11-25" else "modern")
            assert (await session.call("add", {"a": 2, "b": 3}, 10)).result == {
                "content": [{"type": "text", "text": "5"}]
            }
            assert talk.violations == []


async def test_a_pinned_generation_is_not_probed(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path, era="legacy") as talk:
            assert talk.wire.sent("server/discover") == []
        async with talking(faulty(), tmp_path, era="modern") as talk:
            assert talk.wire.sent("initialize") == []


@pytest.mark.parametrize(("speaks", "era"), [("modern", "legacy"), ("legacy", "modern")])
async def test_a_pin_to_what_the_server_does_not_speak_is_refused(speaks: str, era: Era, tmp_path: Path) -> None:
    with anyio.fail_after(20), pytest.raises(ServerError, match="refused the handshake: -32601 Method not found"):
        async with talking(faulty(era=speaks), tmp_path, era=era):
            pass


async def test_modern_requests_carry_version_identity_and_capabilities_and_legacy_ones_do_not(tmp_path: Path) -> None:
    prefix = "io.modelcontextprotocol"
    with anyio.fail_after(20):
        async with talking(faulty(era="modern"), tmp_path) as talk:
            await talk.session.call("recall", {}, 10)
            (listed,), (called,) = talk.wire.sent("tools/list"), talk.wire.sent("tools/call")
            assert listed["_meta"] == called["_meta"]
            assert called["_meta"][f"{prefix}/protocolVersion"] == "2026-07-28"
            assert called["_meta"][f"{prefix}/clientInfo"]["name"] == "mcptrials"
            assert called["_meta"][f"{prefix}/clientCapabilities"] == {}
        async with talking(faulty(era="legacy"), tmp_path) as talk:
            await talk.session.call("recall", {}, 10)
            assert talk.wire.sent("tools/call") == [{"name": "recall", "arguments": {}}]
            assert len(talk.wire.sent("notifications/initialized")) == 1


async def test_a_server_that_ignores_the_probe_is_spoken_to_in_the_legacy_way(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty("no_probe"), tmp_path, connect_s=3) as talk:
            assert talk.session.era == "legacy"
            assert 900 < talk.session.startup_ms < 2500


@pytest.mark.parametrize("fault", ["other_version", "locked_modern"])
async def test_an_error_that_names_a_common_version_leads_to_a_second_probe(fault: str, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(fault), tmp_path, connect_s=3) as talk:
            assert talk.session.era == "modern"
            assert len(talk.wire.sent("server/discover")) == 2


async def test_a_pinned_server_may_take_the_whole_time_to_connect(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty("slow_start=1"), tmp_path, era="modern", connect_s=2) as talk:
            assert talk.session.startup_ms > 1000
            assert talk.violations == []


async def test_a_cache_time_that_makes_no_sense_does_not_hide_a_modern_server(tmp_path: Path) -> None:
    program = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    r = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": -1, "cacheScope": "nobody"}
    result = r if m["method"] == "server/discover" else {"tools": []}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""
    with anyio.fail_after(20):
        async with talking(python(program), tmp_path) as talk:
            assert (talk.session.era, talk.session.name, talk.session.tools) == ("modern", None, ())


# --- Starts that fail ----------------------------------------------------------------------------------------------


async def test_a_server_that_exits_at_once_is_told_with_code_and_last_words(tmp_path: Path) -> None:
    why = await refused(tmp_path, "exit=4")
    assert "server 'faulty' exited with code 4 before the handshake was done" in why
    assert "its stderr says: faulty: cannot open the database" in why


async def test_a_server_that_never_answers_is_given_up_in_time(tmp_path: Path) -> None:
    began = time.monotonic()
    assert "did not answer the handshake within 1 s; its stderr is empty" in await refused(
        tmp_path, "silent", connect_s=1
    )
    assert time.monotonic() - began < 4


async def test_a_slow_start_beyond_the_time_to_connect_is_a_failed_start(tmp_path: Path) -> None:
    assert "did not answer the handshake within 0.5 s" in await refused(tmp_path, "slow_start=1", connect_s=0.5)


async def test_a_refused_handshake_is_told_in_the_servers_words(tmp_path: Path) -> None:
    for era in ("auto", "modern", "legacy"):
        why = await refused(tmp_path, "refuse", era=era)
        assert "refused the handshake: -32603 licence expired" in why


async def test_a_malformed_answer_to_the_handshake_is_told(tmp_path: Path) -> None:
    assert "answered the handshake with a malformed result: " in await refused(tmp_path, "bad_initialize")
    assert "answered the handshake with what is no valid response: 'hello'" in await refused(
        tmp_path, "text_initialize"
    )


async def test_a_tool_list_that_does_not_come_is_a_failed_start(tmp_path: Path) -> None:
    assert "refused tools/list: -32603 no list today" in await refused(tmp_path, "list_error")
    assert "did not answer tools/list within 1 s" in await refused(tmp_path, "list_hang", connect_s=1)


async def test_a_message_too_large_in_the_handshake_is_a_failed_start(tmp_path: Path) -> None:
    program = "import sys; [sys.stdout.write('x' * (1 << 20)) for _ in range(80)]"
    with anyio.fail_after(20), pytest.raises(ServerError, match="one message is larger than 64 MiB") as caught:
        async with talking(python(program), tmp_path):
            pass
    assert caught.value.cause == "server_start"


# --- The tool list -------------------------------------------------------------------------------------------------


async def test_all_pages_are_listed_and_an_empty_cursor_is_not_the_end(tmp_path: Path) -> None:  # C15
    hashes = set()
    for fault in ([], ["two_pages"]):
        with anyio.fail_after(20):
            async with talking(faulty(*fault), tmp_path) as talk:
                assert [tool["name"] for tool in talk.session.tools] == NAMES
                assert talk.session.problems == ()
                hashes.add(talk.session.tools_hash)
    assert len(hashes) == 1


async def test_pages_without_end_are_a_problem_and_no_hang(tmp_path: Path) -> None:
    for fault, problem in (
        ("same_cursor", "the pages of tools/list do not end: cursor 'again' came twice or is no string"),
        ("endless_pages", "tools/list has more than 250 pages"),
        ("number_cursor", "the pages of tools/list do not end: cursor 7 came twice or is no string"),
    ):
        with anyio.fail_after(20):
            async with talking(faulty(fault), tmp_path) as talk:
                assert talk.session.problems == (problem,)


async def test_bad_tools_are_named_and_do_not_cost_the_good_ones(tmp_path: Path) -> None:  # C17
    with anyio.fail_after(20):
        async with talking(faulty("bad_tools"), tmp_path) as talk:
            assert [tool["name"] for tool in talk.session.tools] == NAMES
            assert list(talk.session.problems) == [
                "tool 'no_schema' has no object as inputSchema, but None",
                "tool 'text_schema' has an inputSchema whose type is 'string', not 'object'",
                "tool 'null' has no object as inputSchema, but None",
                "tool number 12 has no name",
                "tool number 13 has no name",
                "tool '\\ud800' has a name that is no Unicode text",
                "tool number 15 is not an object",
                "tool 'echo' is listed twice",
            ]
            assert (await talk.session.call("echo", {"text": "hi"}, 10)).status == "ok"


async def test_a_list_of_too_many_tools_is_cut_and_its_problems_are_told_in_short(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with talking(faulty("many_tools=10001"), tmp_path) as talk:
            assert len(talk.session.tools) == 10_000
            assert talk.session.problems == ("tools/list has more than 10000 tools",)
        async with talking(faulty("nameless_tools=5000"), tmp_path) as talk:
            assert [tool["name"] for tool in talk.session.tools] == NAMES
            assert len(talk.session.problems) == 101
            assert talk.session.problems[-1] == "4900 more problems of the tool list"


async def test_a_deep_schema_is_listed_as_far_as_messages_may_be_deep(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty("deep_schema=90"), tmp_path) as talk:
            assert [tool["name"] for tool in talk.session.tools] == ["deep", *NAMES]
    assert "answered tools/list with what is no valid response" in await refused(tmp_path, "deep_schema=150")


async def test_a_list_that_is_none_is_a_problem(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty("list_text"), tmp_path) as talk:
            assert (talk.session.tools, talk.session.problems) == ((), ("a tools/list result has no list 'tools'",))


async def test_names_that_no_provider_takes_are_the_servers_own(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty("odd_names"), tmp_path) as talk:
            names = [tool["name"] for tool in talk.session.tools]
            assert names == [*NAMES, "calendar.list", "has space", "é漢", "x" * 100, "a/b", "a.b"]
            assert talk.session.problems == ()


# --- Calls ---------------------------------------------------------------------------------------------------------

ODD = {
    "z": 1,
    "a": [1.5, True, None, -0.0, 1e-9, 12345678901234567890],
    "é漢": "a\u2028\x00\x7f \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "m": {"b": {"d": [], "c": {}}, "a": ""},
}


async def test_values_key_order_and_strings_pass_unchanged_both_ways(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:
            text = json.dumps(ODD)
            answer = await talk.session.call("echo", {"text": text, "other": ODD}, 10)
            assert json.dumps(json.loads(answer.result["content"][0]["text"])) == text
            (params,) = talk.wire.sent("tools/call")
            assert json.dumps(params["arguments"]) == json.dumps({"text": text, "other": ODD})
            structured = (await misbehave(talk, "structured_only")).result
            assert json.dumps(structured) == '{"content": [], "structuredContent": {"n": 42, "a": [1, 2.5, null]}}'


STATUSES: Mapping[str, tuple[str, list[str]]] = {  # by fault: the call's status, and what is recorded beside it
    "duplicate": ("ok", ["duplicate_reply"]),
    "string_id": ("ok", ["changed_id"]),
    "noise": ("ok", ["stdout_not_json", "malformed_message", "stdout_not_json"]),
    "bad_utf8": ("ok", ["invalid_utf8"]),
    "surrogate": ("ok", []),
    "control": ("ok", []),
    "ask": ("ok", ["undeclared_capability"]),
    "image": ("ok", []),
    "resource_link": ("ok", []),
    "unknown_block": ("ok", []),
    "structured_only": ("ok", []),
    "tool_error": ("tool_error", []),
    "rpc_error": ("protocol_error", []),
    "closed_error": ("protocol_error", []),
    "no_content": ("contract_violation", ["malformed_result"]),
    "content_text": ("contract_violation", ["malformed_result"]),
    "input_required": ("contract_violation", ["malformed_result"]),
    "no_version": ("contract_violation", ["malformed_message"]),
    "result_text": ("contract_violation", ["malformed_message"]),
    "error_text": ("contract_violation", ["malformed_message"]),
    "two_outcomes": ("contract_violation", ["malformed_message"]),
    "nan": ("contract_violation", ["number_not_json"]),
    "overflow": ("contract_violation", ["number_not_json"]),
    "deep=198": ("ok", []),
    "deep=199": ("contract_violation", ["nested_too_deeply"]),
    "deep=600": ("contract_violation", ["nested_too_deeply"]),
    "deep=100000": ("contract_violation", ["stdout_not_json"]),
}


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_every_answer_has_its_status_at_once_and_the_session_goes_on(era: str, tmp_path: Path) -> None:
    # C07, C12, C30
    found = {}
    # Only modern servers may ask for input in a result; this one never has enough.
    asks = {"input_required": ("input_required", ["endless_input"])} if era == "modern" else {}
    expected = {**STATUSES, **asks}
    with anyio.fail_after(30):
        async with talking(faulty(era=era), tmp_path) as talk:
            for fault in expected:
                name, _, value = fault.partition("=")
                answer = await misbehave(talk, name, value)
                assert (await talk.session.call("echo", {"text": "hi"}, 10)).status == "ok"
                found[fault] = answer.status, talk.breaches
                talk.violations.clear()
    assert found == expected


async def test_an_error_of_the_server_is_not_taken_for_one_of_the_client(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:
            sent = await misbehave(talk, "closed_error")
            assert (sent.status, sent.error) == ("protocol_error", {"code": -32000, "message": "Connection closed"})
            made_up = await misbehave(talk, "crash", "3")
            assert (made_up.status, made_up.error) == ("transport_lost", None)


async def test_what_the_server_sent_is_kept_also_when_it_is_no_valid_answer(tmp_path: Path) -> None:
    expected: Mapping[str, Any] = {
        "result_text": "only text",
        "no_content": {},
        "content_text": {"content": "only text"},
        "no_version": FINE,
        "two_outcomes": FINE,
        "overflow": {"content": [], "structuredContent": {"n": "1e999"}},
    }
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:
            assert {fault: (await misbehave(talk, fault)).result for fault in expected} == expected


@pytest.mark.parametrize("fault", ["hang", "wrong_id", "null_id"])
async def test_a_call_without_an_answer_ends_in_time_and_is_cancelled_on_the_wire(fault: str, tmp_path: Path) -> None:
    # C07
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:
            answer = await misbehave(talk, fault, timeout_s=0.3)
            assert (answer.status, answer.result, answer.error) == ("timeout", None, None)
            assert 300 <= answer.ms < 2000
            (cancelled,) = talk.wire.sent("notifications/cancelled")
            assert "timed out" in cancelled["reason"]
            assert talk.breaches == ([] if fault == "hang" else ["reply_to_unknown_id"])
            assert (await talk.session.call("echo", {"text": "hi"}, 10)).status == "ok"


async def test_a_late_answer_is_recorded_and_not_taken_for_another(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:
            assert (await misbehave(talk, "late", "0.4", timeout_s=0.2)).status == "timeout"
            answer = await talk.session.call("wait", {"seconds": 0.5}, 10)
            assert (answer.status, answer.result) == ("ok", FINE)
            assert talk.breaches == ["late_reply"]


async def test_calls_at_the_same_time_do_not_wait_for_each_other(tmp_path: Path) -> None:
    answers: dict[float, CallResult] = {}
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:

            async def call(seconds: float) -> None:
                answers[seconds] = await talk.session.call("wait", {"seconds": seconds}, 10)

            began = time.monotonic()
            async with anyio.create_task_group() as tasks:
                for number in range(8):
                    tasks.start_soon(call, 0.5 + number / 100)
            assert time.monotonic() - began < 2
    assert [answers[seconds].status for seconds in sorted(answers)] == ["ok"] * 8


async def test_a_crash_ends_every_call_at_once(tmp_path: Path) -> None:  # C06
    statuses: list[str] = []
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:

            async def wait() -> None:
                statuses.append((await talk.session.call("wait", {"seconds": 30}, 60)).status)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                statuses.append((await misbehave(talk, "crash", "3", timeout_s=60)).status)
            statuses.append((await talk.session.call("echo", {"text": "hi"}, 60)).status)
    assert statuses == ["transport_lost"] * 3
    exit_ = talk.channel.exited()
    assert exit_
    assert (exit_.how, exit_.exit_code) == ("crashed", 3)


async def test_a_server_that_closes_its_output_is_lost(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:
            assert (await misbehave(talk, "close_stdout")).status == "transport_lost"


async def test_a_server_that_does_not_read_cannot_hold_up_a_call(tmp_path: Path) -> None:
    program = """
import json, sys, time
r = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": []}
for _ in range(2):
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(input())["id"], "result": r}), flush=True)
time.sleep(2.5)
"""
    with anyio.fail_after(20):
        async with talking(python(program), tmp_path) as talk:
            answer = await talk.session.call("store", {"text": "x" * (1 << 20)}, 0.3)
    assert answer.status == "timeout"
    assert answer.ms < 3000


async def test_a_message_too_large_ends_the_trial_by_its_own_cause(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with talking(faulty(), tmp_path) as talk:
            with pytest.raises(ServerError, match="one message is larger than 64 MiB") as caught:
                await misbehave(talk, "huge", "70")
    assert caught.value.cause == "contract_violation"


async def test_a_flood_of_notifications_is_bounded_in_the_transcript_and_costs_no_call(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path) as talk:
            assert (await misbehave(talk, "flood", "3000")).status == "ok"
            assert len(talk.notifications) == 1000
            assert talk.notifications[0] == ("notifications/message", {"level": "info", "data": "x"})
            assert talk.breaches == ["flood"]
            assert sum(b"notifications/message" in line for _, line in talk.wire.frames) == 3000


async def test_lines_before_the_handshake_are_recorded_and_do_not_spoil_it(tmp_path: Path) -> None:  # C01
    with anyio.fail_after(20):
        async with talking(faulty("banner"), tmp_path) as talk:
            assert talk.breaches == ["stdout_not_json", "malformed_message", "stdout_not_json"]
            assert talk.violations[0] == ("stdout_not_json", "Server started ✓")


async def test_a_20_megabyte_result_costs_under_a_second(tmp_path: Path) -> None:  # C13
    with anyio.fail_after(30):
        async with talking(faulty(), tmp_path) as talk:
            began = time.process_time()
            answer = await misbehave(talk, "huge", "20")
            spent_s = time.process_time() - began
    assert len(answer.result["content"][0]["text"]) == 20 << 20
    assert spent_s < 1


async def test_a_listener_that_fails_is_not_wrapped_in_a_group(tmp_path: Path) -> None:
    """Such as a transcript on a full disk: the run must stop for what it is."""

    def full(what: str, detail: str) -> None:
        raise IncompleteError(f"no space left for {what}")

    server = faulty("noise")
    with anyio.fail_after(20), pytest.raises(IncompleteError, match="no space left for stdout_not_json"):  # noqa: PT012
        async with server.open(place(tmp_path, Wire())) as channel:
            hooks = SessionHooks(full, lambda *_: None)
            async with open_session("faulty", channel, hooks) as session:
                await session.call("echo", {"text": "hi"}, 10)


async def test_what_the_body_raises_comes_out_bare(tmp_path: Path) -> None:
    with anyio.fail_after(20), pytest.raises(KeyError, match="mine"):
        async with talking(faulty(), tmp_path):
            raise KeyError("mine")
