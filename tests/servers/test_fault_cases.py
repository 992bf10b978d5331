"""Faults that people met with servers, each kind with several members: none hangs, hides or costs a neighbour."""

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.projects import DONE, Played, call, calls, faulty, misbehave, play, write_project
from tests.servers.talking import python, talking

from mcptrials.runner import run_async

pytestmark = pytest.mark.anyio

SERVER = """
import json, sys
out = sys.stdout.buffer
def say(line): out.write(line + b"\\n"); out.flush()
def answer(number, result): say(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())
def text(said): return {"content": [{"type": "text", "text": said}]}
START
for line in sys.stdin:
    m = json.loads(line)
    number, method, p = m.get("id"), m["method"], m.get("params") or {}
    if method == "server/discover":
        answer(number, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    elif method == "tools/list":
        answer(number, {"tools": [{"name": "go", "inputSchema": {"type": "object"}, **TOOL}]})
    elif method == "tools/call" and p["name"] == "go":
        CALL
    elif number is not None:
        answer(number, text("fine"))
"""


def program(*, start: str = "", each_call: str = 'answer(number, text("fine"))', tool: Any = None) -> str:
    return SERVER.replace("START", start).replace("TOOL", repr(tool or {})).replace("CALL", each_call)


def config(**parts: Any) -> dict[str, Any]:
    """Such a server in the project file."""
    return {"s": {"command": "{python}", "args": ["-c", program(**parts)], "era": "modern"}}


NOISE = (
    "Server started ✓".encode(),
    b"\x1b[32mINFO\x1b[0m listening",
    b"\xef\xbb\xbfready",
    b"Content-Length: 17\r",
    b"",
    b"   \t",
    b"null",
    b"42",
    b'"text"',
    b"[]",
    b'[{"jsonrpc":"2.0","id":7777,"result":{}}]',
    b"{}",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"1.0","id":7777,"result":{}}',
    b'{"level":"info","msg":"x"}',
    b'{"jsonrpc": "2.0", "id": 7777, "resu',
    b"\xff\xfe\x00{",
    b"\0" * 50,
    b"x" * 9_000,
    b"<html><body>502</body></html>",
)


async def test_every_line_that_is_no_message_is_recorded_and_disturbs_nothing(tmp_path: Path) -> None:  # C01
    says = "\n".join(f"say({noise!r})" for noise in NOISE)
    noisy = program(start=says, each_call=says.replace("\n", "; ") + '; answer(number, text("fine"))')
    with anyio.fail_after(20):
        async with talking(python(noisy), tmp_path) as talk:
            before = len(talk.violations)
            assert before >= len(NOISE)
            assert (await talk.session.call("go", {}, 10)).status == "ok"
            assert len(talk.violations) >= 2 * len(NOISE)
            assert all(len(detail) < 500 for _, detail in talk.violations)
            heard = [line for direction, line in talk.wire.frames if direction == "in"]
            assert all(heard.count(noise) == 2 for noise in NOISE)


ODD_IDS = ["null", "true", "[]", "{}", "-1", "0", '"x"', '""', "1e3", "1.5", "1e999", "9" * 400, '"\\ud800"', '"1e2"']


@pytest.mark.parametrize("kind", ["result", "error"])
async def test_an_answer_to_a_request_that_nobody_made_ends_no_session(kind: str, tmp_path: Path) -> None:  # C07
    body = '"result":{"content":[]}' if kind == "result" else '"error":{"code":1,"message":"x"}'
    lines = [f'{{"jsonrpc":"2.0","id":{number},{body}}}' for number in ODD_IDS]
    says = "; ".join(f"say({line.encode()!r})" for line in lines)
    with anyio.fail_after(20):
        async with talking(python(program(each_call=says)), tmp_path) as talk:
            assert (await talk.session.call("go", {}, 0.3)).status == "timeout"
            assert (await talk.session.call("other", {}, 5)).status == "ok"
            assert len(talk.violations) >= len(ODD_IDS) - 1  # an error to nobody in particular is a valid message


TEXTS = ["a\0b", "\u2028\u2029\u0085", "\ufeffx", "日本 \U0001f600", "\x1b[31m", "\r\n", "\ud800", "\udc00\ud800"]


async def test_every_text_arrives_and_all_files_of_the_run_are_utf8(tmp_path: Path) -> None:  # C12
    tool = {"description": "\ud800 odd \0", "title": "\udfff"}
    says = f"answer(number, text({TEXTS!r}[p['arguments']['n']]))"
    steps = [calls(*(call("go", n=index) for index in range(len(TEXTS)))), DONE]
    played = await play(tmp_path, *steps, servers=config(each_call=says, tool=tool))
    assert played.verdict == ("passed", "none", None)
    raw = [made.answer.result["content"][0]["text"] for made in played.transcript.calls if made.answer]
    assert raw == TEXTS
    assert played.shown == [*TEXTS[:-2], "\ufffd", "\ufffd\ufffd"]
    for path in (tmp_path / "runs").rglob("*.json*"):
        for line in path.read_bytes().decode("utf-8").splitlines() if path.suffix == ".json" else ():
            assert "\ud800" not in line
        if path.suffix == ".jsonl":
            assert all(json.loads(line) for line in path.read_bytes().decode("utf-8").split("\n") if line)


BAD_BYTES = [
    b"\xff\xfe",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf8\x88\x80\x80\x80",
    b"\x80",
    "é".encode("latin-1"),
    b"\xe2\x80",
]


async def test_bytes_that_are_no_utf8_cost_a_character_and_no_call(tmp_path: Path) -> None:  # C12
    line = 'b\'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\' % number'
    says = f"say({line} + {BAD_BYTES!r}[p['arguments']['n']] + b'z\"}}]}}}}')"
    with anyio.fail_after(20):
        async with talking(python(program(each_call=says)), tmp_path) as talk:
            for index, _ in enumerate(BAD_BYTES):
                answer = await talk.session.call("go", {"n": index}, 5)
                shown = answer.result["content"][0]["text"]
                assert (answer.status, shown[0], shown[-1], "\ufffd" in shown) == ("ok", "a", "z", True)


SLOW_PATTERNS = [
    "^(a|a)*$",
    "(a+)+$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*a){30}",
    "(?=(a+))*b",
    "[",
    "\\p{L}+$",
    "a{1,99999}{1,99}",
]


@pytest.mark.parametrize("key", ["pattern", "patternProperties", "propertyNames"])
async def test_patterns_of_a_server_never_run_without_end(key: str, tmp_path: Path) -> None:
    schemas = [_with_pattern(key, pattern) for pattern in SLOW_PATTERNS]
    listing = [{"name": f"t{index}", "inputSchema": schema} for index, schema in enumerate(schemas)]
    written = program().replace('"tools": [', f'"tools": {listing!r} or [', 1)
    server = {"command": "{python}", "args": ["-c", written], "era": "modern"}
    bait = "a" * 40 + "!"
    turn = calls(*(call(f"t{index}", x=bait, **{bait: bait}) for index in range(len(schemas))))
    began = time.monotonic()
    played = await play(tmp_path, turn, DONE, servers={"s": server})
    assert played.verdict == ("passed", "none", None)
    assert played.statuses == ["ok"] * len(schemas)
    assert time.monotonic() - began < 10


def _with_pattern(key: str, pattern: str) -> Any:
    held: dict[str, Any] = {
        "pattern": {"properties": {"x": {"type": "string", "pattern": pattern}}},
        "patternProperties": {"patternProperties": {pattern: {"type": "string"}}, "additionalProperties": False},
        "propertyNames": {"propertyNames": {"pattern": pattern}},
    }
    return {"type": "object", **held[key]}


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ('{"a":1}', "is not of type 'object'"),
        ('{"x": "{\\"a\\":1}"}', """$.x: '{"a":1}' is not of type 'object'"""),
        ('{"x": "[1]"}', "$.x: '[1]' is not of type 'object'"),
    ],
)
async def test_an_object_written_as_text_is_labelled_and_sent_as_it_is(given: str, label: str, tmp_path: Path) -> None:
    """C35: what the server makes of it is its own to show."""
    schema = {"type": "object", "properties": {"x": {"type": "object"}}, "required": ["x"]}
    says = "answer(number, text(json.dumps(p['arguments'])))"
    step = calls({"tool": "go", "raw_arguments": given})
    servers = config(each_call=says, tool={"inputSchema": schema})
    played = await play(tmp_path, step, DONE, servers=servers)
    (made,) = played.transcript.calls
    assert made.call.argument_error
    assert label in made.call.argument_error or "'x' is a required property" in made.call.argument_error
    assert json.loads(played.shown[0]) == json.loads(given)


PROMISE = {"outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}}


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"content": [], "structuredContent": {"n": "42"}}, "$.n: '42' is not of type 'number'"),
        ({"content": [], "structuredContent": {}}, "'n' is a required property"),
        ({"content": [], "structuredContent": None}, "None is not of type 'object'"),
        ({"content": [], "structuredContent": [{"n": 1}]}, "is not of type 'object'"),
        ({"content": [{"type": "text", "text": "42"}]}, "there is no structuredContent"),
        ({"content": []}, "there is no structuredContent"),
        ({"content": [], "structuredContent": {"n": 42, "more": 1}}, None),
    ],
)  # C33
async def test_a_broken_promise_of_a_result_is_recorded_and_the_result_kept(
    result: Any, problem: str | None, tmp_path: Path
) -> None:
    servers = config(each_call=f"answer(number, {result!r})", tool=PROMISE)
    played = await play(tmp_path, calls(call("go")), DONE, servers=servers)
    (made,) = played.transcript.calls
    assert made.answer
    assert (made.answer.status, made.answer.result) == ("ok", result)
    details = [each.detail for each in played.transcript.violations]
    assert ([problem in detail for detail in details] if problem else details) == ([True] if problem else [])


UNKNOWN = "[content of unknown form: {}]".format
CONTENT: list[tuple[Any, str, str]] = [  # a result, its status, what is shown
    ({"content": []}, "ok", ""),
    ({"content": [{"type": "text", "text": ""}]}, "ok", ""),
    ({"content": [{"type": "text"}]}, "ok", "[text]"),
    ({"content": [{"type": "text", "text": 7}]}, "ok", "[text]"),
    ({"content": [None, 1, "x", []]}, "ok", "\n".join(map(UNKNOWN, ("null", "1", '"x"', "[]")))),
    ({"content": [{"type": "hologram", "text": "?"}, {"type": "text", "text": "b"}]}, "ok", "[hologram]\nb"),
    ({"content": [{"type": "image"}]}, "ok", "[image]"),
    ({"content": [{"type": "resource", "resource": "x"}]}, "ok", "[resource]"),
    ({"content": {"type": "text", "text": "a"}}, "contract_violation", '{"content":{"type":"text","text":"a"}}'),
    ({"content": None}, "contract_violation", '{"content":null}'),
    ({}, "contract_violation", "{}"),
    ({"isError": True}, "contract_violation", 'Error: {"isError":true}'),
    ({"content": [], "isError": True}, "tool_error", "Error: "),
    ({"content": [], "isError": "false"}, "ok", ""),
    ({"content": [], "resultType": "novel"}, "contract_violation", ""),
    ({"content": [], "structuredContent": {"n": 42}}, "ok", '{"n":42}'),
]


async def test_no_form_of_a_result_loses_it(tmp_path: Path) -> None:  # C30, C32
    says = f"answer(number, {[result for result, _, _ in CONTENT]!r}[p['arguments']['n']])"
    turn = calls(*(call("go", n=index) for index in range(len(CONTENT))))
    played = await play(tmp_path, turn, DONE, servers=config(each_call=says))
    results = [made.answer.result for made in played.transcript.calls if made.answer]
    assert list(zip(results, played.statuses, played.shown, strict=True)) == CONTENT
    assert played.verdict == ("passed", "none", None)


async def test_progress_logs_pings_and_changes_are_told_and_cost_no_call(tmp_path: Path) -> None:
    faults = ("progress", "log", "list_changed", "cancel", "ping", "ask", "early", "answer_after_error")
    played = await play(tmp_path, *(misbehave(fault) for fault in faults), DONE)
    assert played.verdict == ("passed", "none", None)
    assert played.statuses == [*["ok"] * 7, "protocol_error"]
    assert played.record.server_faults == ("undeclared_capability", "reply_to_unknown_id", "duplicate_reply")


async def one_after_another(folder: Path, server: dict[str, Any], trials: int) -> list[Any]:
    """What each of several trials, side by side, saw of its first call."""
    project = write_project(folder, [calls(call("go")), DONE], servers={"s": server}, trials=trials, concurrency=4)
    with anyio.fail_after(30):
        run = (await run_async(project)).run
    transcripts = [Played(record, run.transcript(record)) for record in run.records()]
    return [played.shown[0] for played in transcripts]


@pytest.mark.parametrize(
    "where",
    [
        "pathlib.Path(tempfile.gettempdir(), 'state')",
        "pathlib.Path.home() / '.state'",
        "pathlib.Path('~/.notes').expanduser()",
        "pathlib.Path(os.environ.get('XDG_DATA_HOME', os.path.expanduser('~')), 'data')",
        "pathlib.Path(sys.argv[1], 'db')",
    ],
)  # C45, C46, C48
async def test_what_a_server_writes_in_one_trial_is_not_there_in_the_next(where: str, tmp_path: Path) -> None:
    start = f"import os, pathlib, sys, tempfile; state = {where}"
    says = "open(state, 'a').write('x'); answer(number, text(open(state).read()))"
    server = config(start=start, each_call=says)["s"]
    server["args"].append("{trial_dir}")
    assert await one_after_another(tmp_path, server, 4) == ["x"] * 4


async def test_the_operators_own_settings_do_not_reach_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C49, C78: neither a home with instructions in it, nor what the shell exports."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "CLAUDE.md").write_text("Always answer 7.")
    for name in ("HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "MY_CREDENTIAL", "PYTHONSTARTUP", "NODE_OPTIONS"):
        monkeypatch.setenv(name, str(home))
    folder = tmp_path / "project"
    folder.mkdir()
    played = await play(folder, calls(call("environment")), DONE, servers={"faulty": faulty()})
    seen = json.loads(played.shown[0])
    kept = {"PYTHONUSERBASE", "UV_CACHE_DIR", "npm_config_cache"}  # caches, whose filling would dominate a trial
    assert [name for name, value in seen.items() if str(home) in value and name not in kept] == []
