"""Servers built with the official SDK, in the version of today and in the one before it."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tests.servers.talking import Talk, talking

from mcptrials.errors import ServerError
from mcptrials.servers.http import HttpServer
from mcptrials.servers.session import Era
from mcptrials.servers.stdio import StdioServer

pytestmark = pytest.mark.anyio

SDK1 = Path(__file__).parents[2] / ".venv-sdk1" / "bin" / "python"
SERVER = '''
{imports}

server = {name}("library", instructions="Look books up.")


@server.tool()
def pages(title: str, copies: int = 1) -> dict[str, int]:
    """How many pages a book has."""
    if title != "Emma":
        raise ValueError(f"no book {{title!r}}")
    return {{"pages": 448 * copies}}


{run}
'''
OVER_STDIO = "server.run()"
OVER_HTTP = """
import socket
import uvicorn

listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_config=None)).run(sockets=[listening])
"""
IMPORTS = {
    2: ("from mcp.server import MCPServer", "MCPServer"),
    1: ("from mcp.server.fastmcp import FastMCP", "FastMCP"),
}


def program(sdk: int, folder: Path, run: str) -> str:
    """Writes a small server for one version of the SDK; the Python that runs it."""
    if sdk == 1 and not SDK1.exists():
        reason = "the environment with version 1 of the SDK is missing: make test sets it up"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    imports, name = IMPORTS[sdk]
    (folder / "library.py").write_text(SERVER.format(imports=imports, name=name, run=run), "utf-8")
    return str(SDK1) if sdk == 1 else sys.executable


def library(sdk: int, folder: Path) -> StdioServer:
    return StdioServer(name="library", command=program(sdk, folder, OVER_STDIO), args=("library.py",))


@asynccontextmanager
async def library_by_url(sdk: int, folder: Path) -> AsyncIterator[HttpServer]:
    python = program(sdk, folder, OVER_HTTP)
    async with await anyio.open_process([python, "library.py"], cwd=folder, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        port = int(await process.stdout.receive())
        try:
            yield HttpServer("library", f"http://127.0.0.1:{port}/mcp")
        finally:
            process.kill()


async def answers(talk: Talk) -> tuple[str, str, str]:
    """The statuses of a good call, of one that fails in the tool, and of one to a tool that is not there."""
    good = await talk.session.call("pages", {"title": "Emma", "copies": 2}, 30)
    assert good.result["structuredContent"] == {"pages": 896}
    failed = await talk.session.call("pages", {"title": "Ulysses"}, 30)
    unknown = await talk.session.call("chapters", {}, 30)
    return good.status, failed.status, unknown.status


@pytest.mark.parametrize(
    ("sdk", "era", "version"),
    [
        (2, "auto", "2026-07-28"),
        (2, "legacy", "2025-11-25"),
        (1, "auto", "2025-11-25"),
    ],
)
async def test_a_server_of_each_sdk_is_spoken_to(sdk: int, era: Era, version: str, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with talking(library(sdk, tmp_path), tmp_path, era=era, connect_s=45) as talk:
            session = talk.session
            assert (session.name, session.protocol_version, session.problems) == ("library", version, ())
            assert session.instructions == "Look books up."
            (tool,) = session.tools
            assert (tool["name"], tool["description"]) == ("pages", "How many pages a book has.")
            assert tool["inputSchema"]["properties"]["title"]["type"] == "string"
            assert await answers(talk) == ("ok", "tool_error", "tool_error")
            assert talk.violations == []
    exit_ = talk.channel.exited()
    assert exit_
    assert (exit_.how, exit_.left_processes) == ("closed", 0)


async def test_a_server_of_the_first_sdk_is_spoken_to_by_url(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with library_by_url(1, tmp_path) as server, talking(server, tmp_path, connect_s=45) as talk:
            assert (talk.session.name, talk.session.protocol_version) == ("library", "2025-11-25")
            assert await answers(talk) == ("ok", "tool_error", "tool_error")
            assert talk.violations == []


async def test_a_modern_pin_on_a_server_of_the_first_sdk_is_a_failed_start(tmp_path: Path) -> None:
    with anyio.fail_after(60), pytest.raises(ServerError, match="refused the handshake: -32602") as caught:
        async with talking(library(1, tmp_path), tmp_path, era="modern", connect_s=45):
            pass
    assert caught.value.cause == "server_start"
