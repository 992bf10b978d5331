"""State that lives in a server's process is read on the trial's own connection, after its host and before its end."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.projects import DONE, Played, call, calls, faulty, misbehave, play, write_project

from mcptrials.errors import UsageError
from mcptrials.events import FinalAnswer, ServerExited, StateRead

pytestmark = pytest.mark.anyio

KEEPER = """
import json, sys
notes, handshakes = [], 0
tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("note", "dump", "get/all")]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    given = params.get("arguments") or {}
    if method == "initialize":
        handshakes += 1
        info = {"name": "keeper", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call" and params["name"] == "note":
        notes.append(given["text"])
        result = {"content": [{"type": "text", "text": "noted"}]}
    elif method == "tools/call":
        state = {"notes": notes, "handshakes": handshakes, "given": given, "pid": __import__("os").getpid()}
        result = {"content": [{"type": "text", "text": json.dumps(state)}], "structuredContent": state}
    else:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""A server whose whole state is in its process."""
NOTE = calls(call("note", text="milk"))


def keeper(**keys: Any) -> dict[str, Any]:
    return {"command": "{python}", "args": ["-c", KEEPER], **keys}


async def kept(folder: Path, reader: Mapping[str, Any], *steps: Mapping[str, Any], **keys: Any) -> Played:
    """A trial whose state is read, with `steps` before the answer; `expected` is what decides, beside `done`."""
    checks = keys.pop("checks", {"expected_regex": "."})
    query = keys.pop("query", "state")
    grader = {"type": "state_check", "query": query, **checks}
    environment = {"readers": {keys.pop("pattern", query): reader}}
    servers = keys.pop("servers", {"keeper": keeper()})
    grading = [{"type": "exact_answer", "expected": "done"}, grader]
    task = {"id": "task", "prompt": "Do it.", "graders": grading}
    (folder / "state.json").write_text(json.dumps([task]), "utf-8")
    settings = {"servers": servers, "environment": environment, "tasks": ["state.json"]}
    return await play(folder, *steps, DONE, **settings, **keys)


def frames(folder: Path) -> list[tuple[str, Any]]:
    """What went over the wire, as JSON."""
    (path,) = folder.glob("runs/*/wire/*.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [(line["dir"], json.loads(line["frame"])) for line in lines]


def sent(folder: Path) -> list[Any]:
    return [frame for direction, frame in frames(folder) if direction == "out" and "id" in frame and "method" in frame]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_tool_is_asked_on_the_connection_that_the_host_negotiated(era: str, tmp_path: Path) -> None:
    servers = {"faulty": faulty(era=era)}
    played = await kept(
        tmp_path, {"tool": "recall"}, calls(call("remember", text="milk")), servers=servers, checks={"expected": "milk"}
    )
    assert played.verdict == ("passed", "none", None)
    requests = sent(tmp_path)
    methods = [request["method"] for request in requests]
    assert methods.count("initialize") + methods.count("server/discover") == 1
    assert methods[-3:] == ["tools/list", "tools/call", "tools/call"]
    ids = [request["id"] for request in requests]
    assert len(set(ids)) == len(ids)
    assert ids[-1] > max(ids[:-1])
    own, host = requests[-1]["params"], requests[-2]["params"]
    assert own.get("_meta") == host.get("_meta")
    assert ("_meta" in own) == (era == "modern")


async def test_what_is_asked_of_a_server_for_its_state_is_no_part_of_the_conversation(tmp_path: Path) -> None:
    played = await kept(tmp_path, {"tool": "dump", "value": "structured", "path": "notes"}, NOTE)
    record, events = played.record, played.transcript.events
    assert record.state["state"].value == ["milk"]
    assert (record.tool_calls, record.sent_calls, record.tool_sequence) == (1, 1, ("note",))
    assert len(played.transcript.calls) == 1
    order = [type(event) for event in events if isinstance(event, FinalAnswer | StateRead | ServerExited)]
    assert order == [FinalAnswer, StateRead, ServerExited]
    assert [frame["result"] for _, frame in frames(tmp_path) if "result" in frame][-1]["structuredContent"]


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        ({"tool": "dump", "path": "notes[0]"}, "milk"),
        ({"tool": "keeper/dump", "value": "structured", "path": "handshakes"}, 1),
        ({"tool": "get/all", "path": "notes"}, ["milk"]),
        ({"tool": "keeper/get/all", "path": "notes.x"}, None),
        ({"tool": {"name": "keeper/dump", "args": {}, "value": "structured", "json_path": "notes"}}, ["milk"]),
        ({"tool": "dump", "args": {"a": "<{key}>", "b": ["{key}", 1, None]}, "path": "given"}, "given"),
    ],
)
async def test_a_tool_gives_its_text_or_its_structured_content(
    reader: Mapping[str, Any], value: Any, tmp_path: Path
) -> None:
    key = '"}, {trial_dir} {key}'
    played = await kept(tmp_path, reader, NOTE, pattern="state of {key}", query=f"state of {key}")
    expected = {"a": f"<{key}>", "b": [key, 1, None]} if value == "given" else value
    (state,) = played.record.state.values()
    assert (state.value, state.error) == (expected, None)


async def test_a_hidden_tool_can_be_read_by_the_environment_and_not_by_the_model(tmp_path: Path) -> None:
    servers = {"keeper": keeper(tools={"hide": ["dump"]})}
    reader = {"tool": "dump", "path": "notes"}
    played = await kept(tmp_path, reader, NOTE, servers=servers, checks={"expected_contains": "milk"})
    assert played.verdict == ("passed", "none", None)


@pytest.mark.parametrize(
    ("reader", "error"),
    [
        ({"tool": "misbehave", "args": {"fault": "crash", "value": ""}}, "transport_lost"),
        ({"tool": "misbehave", "args": {"fault": "close_stdout", "value": ""}}, "transport_lost"),
        ({"tool": "misbehave", "args": {"fault": "hang", "value": ""}, "timeout_seconds": 0.3}, "timeout"),
        ({"tool": "misbehave", "args": {"fault": "rpc_error", "value": ""}}, "protocol_error"),
        ({"tool": "misbehave", "args": {"fault": "no_content", "value": ""}}, "contract_violation"),
        ({"tool": "misbehave", "args": {"fault": "result_text", "value": ""}}, "contract_violation"),
        ({"tool": "misbehave", "args": {"fault": "huge", "value": "17"}}, "more than 16 MiB"),
        ({"tool": "misbehave", "args": {"fault": "huge", "value": "66"}}, "larger than 64 MiB"),
        ({"tool": "fail", "args": {"message": "the disk\nis full"}}, "tool_error: the disk is full"),
        ({"tool": "echo", "args": {"text": "no JSON"}, "path": "a"}, "JSONDecodeError"),
        ({"tool": "echo", "args": {"text": "a"}, "value": "structured"}, "without structuredContent"),
    ],
)
async def test_a_server_that_cannot_say_its_state_leaves_the_trial_unscored(
    reader: Mapping[str, Any], error: str, tmp_path: Path
) -> None:
    played = await kept(tmp_path, reader, servers={"faulty": faulty()})
    assert played.verdict == ("invalid", "grader", "grader_error")
    state = played.record.state["state"]
    assert state.value is None
    assert error in str(state.error)
    assert "\n" not in str(state.error)
    assert played.record.contract_violations == 0
    assert played.record.tool_calls == 0


@pytest.mark.parametrize(
    ("reader", "verdict"),
    [
        ({"tool": "fail", "args": {"message": "no such booking"}}, ("failed", "agent", "wrong_state")),
        ({"tool": "misbehave", "args": {"fault": "rpc_error", "value": ""}}, ("invalid", "grader", "grader_error")),
        ({"tool": "misbehave", "args": {"fault": "crash", "value": ""}}, ("invalid", "grader", "grader_error")),
    ],
)
async def test_a_tool_error_is_null_where_what_was_asked_for_may_be_missing_and_no_other_failure_is(
    reader: Mapping[str, Any], verdict: tuple[str, str, str], tmp_path: Path
) -> None:
    servers = {"faulty": faulty()}
    played = await kept(tmp_path, {**reader, "missing_ok": True}, servers=servers, checks={"expected": {"paid": "1"}})
    assert played.verdict == verdict
    assert played.record.state["state"].value is None


async def test_a_server_that_crashed_under_the_host_is_to_blame_whatever_its_state(tmp_path: Path) -> None:
    played = await kept(tmp_path, {"tool": "recall"}, misbehave("crash"), servers={"faulty": faulty()})
    assert played.verdict == ("failed", "server", "crash")
    assert "transport_lost" in str(played.record.state["state"].error)


async def test_late_answers_to_the_host_are_not_taken_for_those_to_the_reader(tmp_path: Path) -> None:
    played = await kept(
        tmp_path,
        {"tool": "recall"},
        calls(call("remember", text="milk")),
        misbehave("late", "0.3"),
        servers={"faulty": faulty()},
        limits={"call_seconds": 0.1},
        checks={"expected": "milk"},
    )
    assert played.record.state["state"].value == "milk"


async def test_a_server_that_the_host_never_turned_to_is_asked_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text(
        "from mcptrials.events import PromptGiven\n"
        "from mcptrials.protocols import HostResult\n"
        "class Quiet:\n"
        "    version = 'quiet-1'\n"
        "    async def run(self, prompt, model, servers, context):\n"
        "        context.emit(PromptGiven(at_ms=context.clock.now_ms(), system=None, user=prompt, tools=()))\n"
        "        return HostResult('<answer>done</answer>', 'answer')\n",
        "utf-8",
    )
    reader = {"tool": "dump", "value": "structured", "path": "handshakes"}
    played = await kept(tmp_path, reader, hosts=["./quiet.py:Quiet"])
    assert played.record.state["state"].value == 1


async def test_several_servers_are_told_apart_by_name(tmp_path: Path) -> None:
    servers = {"faulty": faulty(), "keeper": keeper()}
    played = await kept(tmp_path, {"tool": "keeper/dump", "path": "notes"}, NOTE, servers=servers)
    assert played.record.state["state"].value == ["milk"]
    with pytest.raises(UsageError) as caught:
        await kept(tmp_path, {"tool": "dump"}, servers=servers)
    assert "mcptrials.yaml:1: environment.readers.state: tool 'dump' names no server: write SERVER/TOOL" in str(
        caught.value
    )


async def test_a_tool_that_the_server_does_not_have_is_refused_before_any_trial(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await kept(tmp_path, {"tool": "keeper/dmp"})
    assert str(caught.value) == ("server 'keeper': it has no tool 'dmp', which a reader asks for; did you mean 'dump'?")


async def test_an_arm_without_servers_has_no_state_of_theirs(tmp_path: Path) -> None:
    played = await kept(tmp_path, {"tool": "keeper/dump"}, variants={"bare": "none"})
    assert played.verdict == ("invalid", "grader", "grader_error")
    assert "servers here: none" in str(played.record.state["state"].error)


async def test_other_readers_look_before_the_close_when_they_are_asked_to(tmp_path: Path) -> None:
    flushing = KEEPER + "\nopen(sys.argv[1], 'w').write('flushed')\n"
    servers = {"keeper": {"command": "{python}", "args": ["-c", flushing, "{trial_dir}/out.txt"]}}
    for early, value in ((True, None), (False, "flushed")):
        folder = tmp_path / str(early)
        folder.mkdir()
        played = await kept(folder, {"file": "out.txt", "before_close": early}, servers=servers)
        assert played.record.state["state"].value == value


async def test_a_state_that_needs_a_server_cannot_be_reset_or_hashed(tmp_path: Path) -> None:
    for key, what in (("reset", "a reset step is"), ("state_hash", "no server runs yet")):
        with pytest.raises(UsageError, match=what):
            write_project(tmp_path, [DONE], environment={key: [{"tool": "recall"}]})
