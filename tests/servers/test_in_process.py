"""Servers as Python objects: framed like any other, new in each trial, and nothing they do holds up the run."""

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer, Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from tests.projects import DONE, call, calls, play, write_project
from tests.servers.serving import library
from tests.servers.talking import talking

from mcptrials.encoding import LONG
from mcptrials.errors import ServerError, UsageError
from mcptrials.runner import run_async
from mcptrials.servers.in_process import in_process_server
from mcptrials.servers.session import Era

pytestmark = pytest.mark.anyio

COUNTER = """
from pathlib import Path

from mcp.server import MCPServer


def counter(trial_dir):
    server, count = MCPServer("counter"), 0

    @server.tool()
    def increase() -> int:
        nonlocal count
        count += 1
        (Path(trial_dir) / "count.txt").write_text(str(count))
        return count

    return server


def broken():
    raise OSError("no database")


def three():
    return 3


def wants(database):
    return None


async def later():
    return counter("/nonexistent")


name = "no function"
"""


def low_level() -> Server[Any]:
    async def listed(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="pages", input_schema={"type": "object"})])

    async def called(context: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="448")], structured_content={"pages": 448})

    return Server("library", on_list_tools=listed, on_call_tool=called)


class Wrapped:
    """Keeps the SDK's server where FastMCP does."""

    def __init__(self) -> None:
        self._mcp_server = low_level()


@pytest.mark.parametrize("factory", [library, low_level, Wrapped])
@pytest.mark.parametrize(("era", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_server_object_is_spoken_to_in_frames(factory: Any, era: Era, version: str, tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with talking(in_process_server("web", "m:f", factory), tmp_path, era=era) as talk:
            assert (talk.session.name, talk.session.protocol_version) == ("library", version)
            answer = await talk.session.call("pages", {"title": "Emma"}, 5)
            assert answer.result["structuredContent"] == {"pages": 448}
            assert talk.violations == []
            assert {direction for direction, _ in talk.wire.frames} == {"in", "out"}
        exit_ = talk.channel.exited()
    assert exit_
    assert (exit_.how, exit_.exit_code) == ("closed", None)


@pytest.mark.parametrize("synchronous", [True, False])
async def test_a_server_that_blocks_its_thread_times_out_and_is_left_behind(
    synchronous: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcptrials.servers.thread_channel.EXIT_GRACE_S", 0.1)
    release = threading.Event()

    def factory() -> MCPServer:
        server = MCPServer("blocking")
        if synchronous:
            server.add_tool(lambda: release.wait(20), name="hang")
        else:

            async def hang() -> bool:
                return release.wait(20)

            server.add_tool(hang, name="hang")
        return server

    try:
        with anyio.fail_after(10):
            async with talking(in_process_server("web", "m:f", factory), tmp_path) as talk:
                assert (await talk.session.call("hang", {}, 0.2)).status == "timeout"
        exit_ = talk.channel.exited()
        assert exit_
        assert exit_.how == "abandoned"
    finally:
        release.set()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("bad page")])
async def test_a_server_whose_lifespan_fails_ends_the_start_with_its_error(
    error: BaseException, tmp_path: Path
) -> None:
    def factory() -> Any:
        raise error

    with anyio.fail_after(10), pytest.raises(ServerError, match=f"m:f: {type(error).__name__}") as caught:
        async with talking(in_process_server("web", "m:f", factory), tmp_path):
            pass
    assert caught.value.cause == "server_start"


@pytest.mark.parametrize("error", [SystemExit(4), KeyboardInterrupt()])
async def test_a_tool_that_ends_its_server_is_a_crash_at_once_though_another_call_still_blocks(
    error: BaseException, tmp_path: Path
) -> None:
    release = threading.Event()

    def factory() -> MCPServer:
        def end() -> None:
            raise error

        server = MCPServer("ending")
        server.add_tool(lambda: release.wait(20), name="hang")
        server.add_tool(end, name="end")
        return server

    try:
        with anyio.fail_after(10):
            async with talking(in_process_server("web", "m:f", factory), tmp_path) as talk:
                assert (await talk.session.call("hang", {}, 0.1)).status == "timeout"
                with anyio.fail_after(3), pytest.raises(ServerError, match=f"m:f: {type(error).__name__}") as caught:
                    await talk.session.call("end", {}, 9)
        assert (caught.value.cause, caught.value.blame) == ("crash", "server")
    finally:
        release.set()


ENDING = """
import sys

from mcp.server import MCPServer


def server():
    made = MCPServer("ending")
    made.add_tool(lambda: sys.exit(4), name="end")
    return made
"""


async def test_a_trial_whose_server_object_exits_fails_and_prints_no_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "ending.py").write_text(ENDING, "utf-8")
    played = await play(tmp_path, calls(call("end")), DONE, servers={"e": {"python": "./ending.py:server"}})
    assert played.verdict == ("failed", "server", "crash")
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err + caplog.text
    assert "SystemExit" not in caplog.text


async def test_a_server_object_may_say_no_more_than_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcptrials.servers.thread_channel.MAX_LINE", 1 << 20)
    monkeypatch.setattr("mcptrials.servers.thread_channel.MAX_OUTPUT", 3 << 20)

    def factory() -> MCPServer:
        server = MCPServer("talkative")
        server.add_tool(lambda size: "a" * int(size), name="say", structured_output=False)
        return server

    for before, last, why in ((0, 2 << 20, "one message is larger"), (3, 900 << 10, "wrote more than")):
        with anyio.fail_after(10):
            async with talking(in_process_server("web", "m:f", factory), tmp_path) as talk:
                for _ in range(before):
                    assert (await talk.session.call("say", {"size": last}, 5)).status == "ok"
                with pytest.raises(ServerError, match=why) as caught:
                    await talk.session.call("say", {"size": last}, 5)
        assert caught.value.cause == "contract_violation"


async def test_long_frames_of_a_server_object_are_logged_by_another_thread_and_all_of_them(tmp_path: Path) -> None:
    def factory() -> MCPServer:
        server = MCPServer("long")
        server.add_tool(lambda: "a" * LONG, name="say", structured_output=False)
        return server

    with anyio.fail_after(10):
        async with talking(in_process_server("web", "m:f", factory), tmp_path) as talk:
            assert (await talk.session.call("say", {}, 5)).status == "ok"
            assert (await talk.session.call("say", {}, 5)).status == "ok"
    threads = [thread for size, thread in talk.wire.written if size > LONG]
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_every_trial_has_a_new_object_that_knows_its_directory(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTER, "utf-8")
    readers = {"the count": {"file": "{trial_dir}/count.txt"}}
    servers = {"counter": {"python": "./counter.py:counter"}}
    project = write_project(
        tmp_path,
        [calls(call("increase")), calls(call("increase")), DONE],
        servers=servers,
        environment={"readers": readers},
        trials=3,
    )
    with anyio.fail_after(30):
        run = (await run_async(project)).run
    results = [[made.answer.shown for made in run.transcript(record).calls if made.answer] for record in run.records()]
    assert results == [["1", "2"]] * 3


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("./counter.py:broken", "./counter.py:broken: OSError: no database; call ./counter.py:broken by hand"),
        ("./counter.py:three", "TypeError: it gave an object of type int, not a server of the MCP SDK 2 or FastMCP"),
        ("./counter.py:wants", "'./counter.py:wants' wants the argument 'database'; it may only want 'trial_dir'"),
        ("./counter.py:name", "'./counter.py:name' is an object of type str; name a function"),
        ("./counter.py:missing", "cannot load './counter.py:missing': AttributeError"),
        ("./nowhere.py:server", "cannot load './nowhere.py:server'"),
        ("no_such_module:server", "cannot load 'no_such_module:server': ModuleNotFoundError"),
    ],
)
async def test_a_factory_that_gives_no_server_is_found_before_any_trial(
    path: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "counter.py").write_text(COUNTER, "utf-8")
    project = write_project(tmp_path, [DONE], servers={"counter": {"python": path}})
    with anyio.fail_after(20), pytest.raises(UsageError) as caught:
        await run_async(project)
    assert message in str(caught.value)


async def test_what_a_server_object_prints_does_not_mix_with_our_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "counter.py").write_text(COUNTER.replace("return server", "print('hello'); return server"), "utf-8")
    played = await play(tmp_path, DONE, servers={"counter": {"python": "./counter.py:counter"}})
    assert played.verdict == ("passed", "none", None)
    printed = capsys.readouterr()
    assert (printed.out, "hello" in printed.err) == ("", True)


async def test_a_factory_may_be_a_coroutine(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTER, "utf-8")
    played = await play(tmp_path, DONE, servers={"counter": {"python": "./counter.py:later"}})
    assert played.verdict == ("passed", "none", None)
