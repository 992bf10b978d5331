"""Trials with servers by URL: what is found before any spend, whose fault it is, and that credentials stay hidden."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.projects import DONE, call, calls, faulty, play, write_project
from tests.servers.serving import Served, library, serving

from mcptrials.errors import UsageError
from mcptrials.events import PromptGiven
from mcptrials.project import Project
from mcptrials.runner import run_async
from mcptrials.runner.options import Silent

pytestmark = pytest.mark.anyio
EMMA = calls(call("pages", title="Emma"))
TOKEN = "tok-4f9aa01c7e"  # what the command gives first; its number grows


@pytest.mark.parametrize(
    ("response", "faults"),
    [
        (Response("boom", 500), ("server_ended",)),
        (Response('{"jsonrpc": "2.0", "id":', media_type="application/json"), ("not_json", "server_ended")),
    ],
)
async def test_faults_of_a_server_by_url_are_named_as_it_can_have_them(
    response: Response, faults: tuple[str, ...], tmp_path: Path
) -> None:
    app = library().streamable_http_app()

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        calls_ = scope["type"] == "http" and Request(scope).headers.get("mcp-method") == "tools/call"
        await (response if calls_ else app)(scope, receive, send)

    with serving(failing) as served:
        played = await play(tmp_path, EMMA, DONE, servers={"web": {"url": served.url}})
    assert played.record.server_faults == faults


class Guarded:
    """The library behind a token, of which only `good` is accepted."""

    def __init__(self) -> None:
        self.app = library().streamable_http_app()
        self.good: str | None = None
        self.seen: list[str | None] = []
        self.calls_left: int | None = None
        """After how many tool calls the token expires."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            given = request.headers.get("authorization")
            self.seen.append(given)
            if self.calls_left is not None and request.headers.get("mcp-method") == "tools/call":
                if self.calls_left == 0:
                    self.good, self.calls_left = f"Bearer {TOKEN}2", None
                else:
                    self.calls_left -= 1
            if given != self.good:
                await Response("who are you?", 401, {"www-authenticate": "Bearer"})(scope, receive, send)
                return
        await self.app(scope, receive, send)


@pytest.fixture
def guarded() -> Iterator[tuple[Guarded, Served]]:
    app = Guarded()
    with serving(app) as served:
        yield app, served


def token_command(folder: Path) -> list[str]:
    """A command that prints a new token each time."""
    (folder / "token.py").write_text(
        "from pathlib import Path\n"
        "count = Path('count.txt')\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        f"print('{TOKEN}' + str(n))\n"
    )
    return ["{python}", "token.py"]


def everything(folder: Path) -> str:
    """All text in the run folder."""
    return "".join(path.read_text("utf-8") for path in (folder / "runs").rglob("*") if path.is_file())


async def refused(project: Project) -> str:
    with pytest.raises(UsageError) as caught:
        await run_async(project)
    return str(caught.value)


async def test_a_trial_with_a_server_by_url_passes_and_its_wire_is_kept(tmp_path: Path) -> None:
    with serving(library().streamable_http_app()) as served:
        played = await play(tmp_path, EMMA, DONE, servers={"web": {"url": served.url}})
    assert played.verdict == ("passed", "none", None)
    assert played.statuses == ["ok"]
    (wire,) = (tmp_path / "runs").glob("*/wire/*")
    assert len(wire.read_text("utf-8").splitlines()) >= 6


async def test_a_missing_credential_is_found_before_any_trial(guarded: tuple[Guarded, Served], tmp_path: Path) -> None:
    app, served = guarded
    app.good = "Bearer right"
    project = write_project(tmp_path, [DONE], servers={"web": {"url": served.url}})
    assert await refused(project) == (
        f"mcptrials.yaml:1: servers.web: {served.url} answered server/discover with "
        "HTTP 401 Unauthorized: it does not accept us without a "
        "credential; add servers.web.headers or token_command: 'who are you?'; check the credential"
    )


async def test_a_wrong_credential_is_named_but_not_shown(guarded: tuple[Guarded, Served], tmp_path: Path) -> None:
    app, served = guarded
    app.good = "Bearer right"
    server = {"url": served.url, "headers": {"Authorization": "Bearer ${LIBRARY_TOKEN}"}}
    write_project(tmp_path, [DONE])
    path = tmp_path / "mcptrials.yaml"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"servers": {"web": server}}))
    message = await refused(Project.load(tmp_path, environ={"LIBRARY_TOKEN": "wrong-secret-77"}))
    assert "servers.web.headers hold: Authorization (from LIBRARY_TOKEN)" in message
    assert "wrong-secret-77" not in message


async def test_a_token_that_expires_in_a_trial_is_asked_for_again_and_stands_in_no_file(
    guarded: tuple[Guarded, Served], tmp_path: Path
) -> None:
    app, served = guarded
    app.good, app.calls_left = f"Bearer {TOKEN}1", 1
    server = {"url": served.url, "token_command": token_command(tmp_path)}
    played = await play(tmp_path, EMMA, EMMA, DONE, servers={"web": server})
    assert played.verdict == ("passed", "none", None)
    assert (tmp_path / "count.txt").read_text() == "2"
    assert {f"Bearer {TOKEN}1", f"Bearer {TOKEN}2"} <= set(app.seen)
    assert TOKEN not in everything(tmp_path)


async def test_a_token_that_stays_refused_makes_the_trial_invalid_by_the_harness(
    guarded: tuple[Guarded, Served], tmp_path: Path
) -> None:
    app, served = guarded
    app.good, app.calls_left = "Bearer fixed", 0
    server = {"url": served.url, "headers": {"Authorization": "Bearer fixed"}}
    played = await play(tmp_path, EMMA, DONE, servers={"web": server})
    assert played.verdict == ("invalid", "harness", "auth")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit('no login')", "token_command of server 'web' exited with code 1: no login"),
        ("print('a b')", "token_command of server 'web' should print a token and nothing else"),
        ("pass", "token_command of server 'web' should print a token and nothing else"),
    ],
)
async def test_a_command_that_gives_no_token_is_found_before_any_trial(
    program: str, message: str, tmp_path: Path
) -> None:
    server = {"url": "http://127.0.0.1:9/mcp", "token_command": ["{python}", "-c", program]}
    assert message in await refused(write_project(tmp_path, [DONE], servers={"web": server}))


async def test_a_command_for_a_token_has_the_time_that_connecting_has(tmp_path: Path) -> None:
    server = {"url": "http://127.0.0.1:9/mcp", "token_command": ["{python}", "-c", "import time; time.sleep(600)"]}
    project = write_project(tmp_path, [DONE], servers={"web": server}, limits={"connect_seconds": 0.5})
    with anyio.fail_after(20):
        said = await refused(project)
    assert "token_command of server 'web': " in said
    assert "did not end within 0.5 s" in said


async def test_a_variant_may_be_at_a_url_where_the_base_is_a_command(tmp_path: Path) -> None:
    with serving(library().streamable_http_app()) as served:
        project = write_project(
            tmp_path,
            [DONE],
            servers={"web": faulty(env={"A": "b"})},
            variants={"base": {}, "remote": {"web": {"url": served.url}}},
        )
        result = await run_async(project)
    assert [record.verdict for record in result.run.records()] == ["passed", "passed"]
    assert {record.server_name for record in result.run.records()} == {"faulty", "library"}


async def test_two_servers_with_one_tool_name_are_told_apart_and_both_names_are_kept(tmp_path: Path) -> None:
    with serving(library().streamable_http_app()) as one, serving(library().streamable_http_app()) as other:
        servers = {"paris": {"url": one.url}, "rome": {"url": other.url}}
        asked = calls(call("paris__pages", title="Emma"), call("rome__pages", title="Ulysses"))
        played = await play(tmp_path, asked, DONE, servers=servers)
    made = [(each.call.shown_name, each.call.server, each.call.tool) for each in played.transcript.calls]
    assert made == [("paris__pages", "paris", "pages"), ("rome__pages", "rome", "pages")]
    assert played.statuses == ["ok", "tool_error"]


async def test_the_servers_name_stands_before_its_tools_when_that_is_asked_for(tmp_path: Path) -> None:
    name = "production_database_of_the_whole_company_and_more_besides"
    with serving(library().streamable_http_app()) as served:
        servers = {name: {"url": served.url, "tools": {"prefix": "always"}}}
        played = await play(tmp_path, DONE, servers=servers)
    (prompt,) = [event for event in played.transcript.events if isinstance(event, PromptGiven)]
    (tool,) = prompt.tools
    assert tool.shown_name[:55] == f"{name}__pages"[:55]
    assert len(tool.shown_name) == 64
    assert (tool.server, tool.tool) == (name, "pages")


async def test_trials_side_by_side_on_one_server_that_may_write_are_warned_of(tmp_path: Path) -> None:
    with serving(library().streamable_http_app()) as served:
        for headers, trials, warned in ({}, 2, True), ({"X-Workspace": "{trial_dir}"}, 2, False), ({}, 1, False):
            listener = Silent()
            servers = {"web": {"url": served.url, "headers": headers}}
            project = write_project(tmp_path, [DONE], servers=servers, concurrency=trials)
            await run_async(project, None, listener)
            assert any("'web' runs once for all trials, 2 at a time" in each for each in listener.warnings) == warned


async def test_a_certificate_that_cannot_be_read_is_found_before_any_trial(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    for name, message in {
        "bad.pem": f"ca_file of server 'web': cannot read {tmp_path / 'bad.pem'}",
        "none.pem": f"servers.web.ca_file: there is no file {str(tmp_path / 'none.pem')!r}; mend the path",
    }.items():
        servers = {"web": {"url": "https://127.0.0.1:9/mcp", "ca_file": name}}
        assert message in await refused(write_project(tmp_path, [DONE], servers=servers))


class Handles:
    """A server of the legacy generation that gives out handles, which only the session knows that got them."""

    def __init__(self) -> None:
        self.sessions: dict[str, set[str]] = {}
        self.closed: list[str] = []
        self._count = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        await (await self._answer(request))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        session = request.headers.get("mcp-session-id", "")
        if request.method == "DELETE":
            self.closed.append(session)
            return Response()
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        if message["method"] == "initialize":
            session = f"session-{len(self.sessions)}"
            self.sessions[session] = set()
        elif session not in self.sessions:
            return Response(status_code=404 if session else 400)
        if "id" not in message:
            return Response(status_code=202)
        result = self._result(message["method"], message.get("params") or {}, self.sessions[session])
        answer = {"jsonrpc": "2.0", "id": message["id"], **result}
        return JSONResponse(answer, headers={"mcp-session-id": session})

    def _result(self, method: str, params: Any, known: set[str]) -> dict[str, Any]:
        if method == "initialize":
            info = {"name": "handles", "version": "1"}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        if method == "tools/list":
            return {"result": {"tools": [{"name": each, "inputSchema": {"type": "object"}} for each in ("get", "use")]}}
        if method != "tools/call":
            return {"error": {"code": -32601, "message": "unknown method"}}
        if params["name"] == "get":
            self._count += 1
            known.add(f"handle-{self._count}")
            return {"result": {"content": [{"type": "text", "text": f"handle-{self._count}"}]}}
        found = params["arguments"]["handle"] in known
        return {
            "result": {"content": [{"type": "text", "text": "known" if found else "unknown"}], "isError": not found}
        }


async def test_a_handle_of_one_trial_is_unknown_in_the_next_since_each_has_a_session_of_its_own(tmp_path: Path) -> None:
    handles = Handles()
    with serving(handles) as served:
        servers = {"handles": {"url": served.url, "era": "legacy"}}
        steps = [calls(call("get"), call("use", handle="handle-1")), DONE]
        project = write_project(tmp_path, steps, servers=servers, trials=3, concurrency=1)
        with anyio.fail_after(30):
            run = (await run_async(project)).run
    shown = {}
    for record in run.records():
        shown[record.trial] = [made.answer.shown for made in run.transcript(record).calls if made.answer]
    assert shown == {n: [f"handle-{n}", "known" if n == 1 else "Error: unknown"] for n in (1, 2, 3)}
    assert sorted(handles.closed) == sorted(handles.sessions)
