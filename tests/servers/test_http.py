"""Servers by URL: both eras, and a clear word for everything that HTTP can do besides answering."""

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount
from tests.servers.serving import App, Served, answering, key_and_certificate, library, serving
from tests.servers.talking import Wire, talking

from mcptrials.errors import HarnessError, ServerError, TrialError
from mcptrials.servers.http import HttpServer
from mcptrials.servers.session import Era

pytestmark = pytest.mark.anyio


class Recorded:
    """An app that remembers the requests of the one inside."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.requests: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.requests.append((scope["method"], headers))
        await self.app(scope, receive, send)


def legacy(answer: Any) -> Starlette:
    """A legacy server written by hand: the handshake, one tool, and `answer(request, message)` for calls."""

    async def answered(request: Request) -> Response:
        if request.method != "POST":
            found: Response = await answer(request, {})
            return found
        message = await request.json()
        number, method = message.get("id"), message.get("method")
        if method == "server/discover":
            return Response("no session", 400)
        if method == "initialize":
            info = {"name": "hand", "version": "1"}
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result}, headers={"mcp-session-id": "s1"})
        if method == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
            return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})
        if method == "tools/call" or "method" not in message:
            answered_: Response = await answer(request, message)
            return answered_
        return Response(status_code=202)

    return answering(answered)


def fine(number: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": "fine"}]}}


def event(value: Any, name: str | None = None) -> str:
    return (f"id: {name}\n" if name else "") + f"data: {json.dumps(value) if value else ''}\n\n"


def stream(*parts: str) -> StreamingResponse:
    async def sent() -> Any:
        for part in parts:
            yield part

    return StreamingResponse(sent(), media_type="text/event-stream")


async def refused(url: str, folder: Path, era: Era = "auto", **keys: Any) -> TrialError:
    """Why a session cannot be opened."""
    with anyio.fail_after(15), pytest.raises(TrialError) as caught:
        async with talking(HttpServer("web", url, **keys), folder, era=era, connect_s=8):
            pass
    return caught.value


# --- Servers of the SDK --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"json_response": True}, {"stateless_http": True}])
@pytest.mark.parametrize(("era", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_server_is_spoken_to_in_each_era(
    settings: Mapping[str, Any], era: Era, version: str, tmp_path: Path
) -> None:
    app = Recorded(library().streamable_http_app(**settings))
    with anyio.fail_after(20), serving(app) as served:
        async with talking(HttpServer("web", served.url), tmp_path, era=era) as talk:
            assert (talk.session.name, talk.session.protocol_version) == ("library", version)
            assert talk.session.instructions == "Look books up."
            good = await talk.session.call("pages", {"title": "Emma"}, 10)
            assert good.result["structuredContent"] == {"pages": 448}
            assert (await talk.session.call("pages", {"title": "Ulysses"}, 10)).status == "tool_error"
            assert talk.violations == []
        exit_ = talk.channel.exited()
        assert exit_
        assert (exit_.how, exit_.exit_code) == ("closed", None)
        assert {direction for direction, _ in talk.wire.frames} == {"in", "out"}
        ended = [headers.get("mcp-session-id") for method, headers in app.requests if method == "DELETE"]
        stateful = version == "2025-11-25" and "stateless_http" not in settings
        assert (len(ended) == 1 and bool(ended[0])) if stateful else ended == []


async def test_the_probe_of_a_legacy_server_costs_one_request(tmp_path: Path) -> None:
    with anyio.fail_after(20), serving(legacy(lambda request, message: None)) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            assert (talk.session.protocol_version, talk.session.era) == ("2025-11-25", "legacy")
            assert talk.violations == []
            assert len(talk.wire.sent("server/discover")) == len(talk.wire.sent("initialize")) == 1


async def test_modern_requests_repeat_in_headers_what_the_specification_wants(tmp_path: Path) -> None:
    server = MCPServer("weather")

    @server.tool()
    def rain(city: str) -> str:
        return city

    tool = server._tool_manager.get_tool("rain")
    assert tool
    tool.parameters["properties"]["city"]["x-mcp-header"] = "City"
    app = Recorded(server.streamable_http_app())
    with anyio.fail_after(20), serving(app) as served:
        async with talking(HttpServer("web", served.url, {"X-Key": "k"}), tmp_path) as talk:
            assert (await talk.session.call("rain", {"city": "Zürich"}, 10)).status == "ok"
    _, headers = app.requests[-1]
    assert (headers["mcp-method"], headers["mcp-name"], headers["mcp-protocol-version"]) == (
        "tools/call",
        "rain",
        "2026-07-28",
    )
    assert headers["mcp-param-city"] == "=?base64?WsO8cmljaA==?="
    assert {sent["x-key"] for _, sent in app.requests} == {"k"}
    assert all("mcp-session-id" not in sent for _, sent in app.requests)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_call_without_an_answer_times_out_and_the_next_one_is_answered(era: Era, tmp_path: Path) -> None:
    server, started = library(), asyncio.Event()

    @server.tool()
    async def hang() -> str:
        started.set()
        await anyio.sleep(30)
        return "late"

    with anyio.fail_after(20), serving(server.streamable_http_app()) as served:
        async with talking(HttpServer("web", served.url), tmp_path, era=era) as talk:
            assert (await talk.session.call("hang", {}, 0.3)).status == "timeout"
            assert (await talk.session.call("pages", {"title": "Emma"}, 10)).status == "ok"
            cancelled = talk.wire.sent("notifications/cancelled")
            assert len(cancelled) == (1 if era == "legacy" else 0)


# --- What the transport may do -------------------------------------------------------------------------------------


async def test_a_stream_that_is_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    resumed: list[str | None] = []

    async def answer(request: Request, message: Any) -> Response:
        if request.method == "POST":
            return stream("retry: 10\n" + event(None, f"{message['id']}"))
        last = request.headers.get("last-event-id")
        if last is None:
            return Response(status_code=405)
        resumed.append(last)
        return stream(event(None, f"{last}")) if len(resumed) == 1 else stream(event(fine(int(last)), "end"))

    with anyio.fail_after(20), serving(legacy(answer)) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            assert (await talk.session.call("echo", {}, 10)).status == "ok"
    assert len(resumed) == 2


async def test_requests_of_the_server_are_answered(tmp_path: Path) -> None:
    answers: list[Any] = []

    async def answer(request: Request, message: Any) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        if "method" not in message:
            answers.append(message)
            return Response(status_code=202)

        async def sent() -> Any:
            yield event({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            for _ in range(500):
                if answers:
                    break
                await asyncio.sleep(0.01)
            yield event(fine(message["id"]))

        return StreamingResponse(sent(), media_type="text/event-stream")

    with anyio.fail_after(20), serving(legacy(answer)) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            assert (await talk.session.call("echo", {}, 10)).status == "ok"
    assert answers == [{"jsonrpc": "2.0", "id": "p", "result": {}}]


async def test_a_large_answer_arrives_whole(tmp_path: Path) -> None:
    text = "é" * 3_000_000

    async def answer(request: Request, message: Any) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        return stream(event(fine(message["id"]) | {"result": {"content": [{"type": "text", "text": text}]}}))

    with anyio.fail_after(20), serving(legacy(answer)) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            found = await talk.session.call("echo", {}, 10)
            assert found.result["content"][0]["text"] == text
    [thread] = [thread for size, thread in talk.wire.written if size > len(text)]
    assert thread != threading.get_ident()


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ('{"jsonrpc":"2.0","id":%d,"result":7}', "application/json", "contract_violation"),
        ('{"jsonrpc":"2.0","id":%d,"result":{"content":[],"n":NaN}}', "application/json", "contract_violation"),
        ('{"jsonrpc":"2.0","id":%d,"result":{', "application/json", "contract_violation"),
        ('data: {"jsonrpc":"2.0","id":%d,\n\n', "text/event-stream; charset=utf-8", "contract_violation"),
        ('{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\udcff"}]}}', "application/json", "ok"),
        ('{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"no"}}', "application/json", "protocol_error"),
    ],
)
async def test_a_malformed_answer_is_a_breach_and_not_a_hang(body: str, kind: str, status: str, tmp_path: Path) -> None:
    async def answer(request: Request, message: Any) -> Response:
        sent = (body % message["id"] if message else "").encode("utf-8", "surrogateescape")
        return Response(sent, 200 if message else 405, media_type=kind)

    with anyio.fail_after(20), serving(legacy(answer)) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            began = time.monotonic()
            assert (await talk.session.call("echo", {}, 10)).status == status
            assert time.monotonic() - began < 5
            assert bool(talk.violations) == (status != "protocol_error")
            assert not [breach for breach in talk.breaches if "stdout" in breach]


@pytest.mark.parametrize(
    ("response", "cause", "message"),
    [
        (Response("gone", 404), "crash", "has lost the session; was it restarted?"),
        (Response("boom <b>", 500), "crash", "HTTP 500 Internal Server Error: 'boom <b>'"),
        (Response(status_code=202), "contract_violation", "with no MCP message, but HTTP 202"),
        (JSONResponse(fine(99999)), "contract_violation", "with no MCP message, but HTTP 200"),
        (Response("<html>", 200, media_type="text/html"), "contract_violation", "text/html; charset=utf-8: '<html>'"),
        (stream(": nothing\n\n"), "contract_violation", "no MCP message"),
        (Response('{"id": 7}'.encode("utf-16"), media_type="application/json"), "contract_violation", "no MCP message"),
    ],
)
async def test_a_call_that_gets_no_answer_ends_the_session_at_once(
    response: Response, cause: str, message: str, tmp_path: Path
) -> None:
    async def answer(request: Request, _: Any) -> Response:
        return response if request.method == "POST" else Response(status_code=405)

    with anyio.fail_after(20), serving(legacy(answer)) as served, pytest.raises(ServerError) as caught:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            await talk.session.call("echo", {}, 10)
    assert caught.value.cause == cause
    assert f"{served.url} answered tools/call" in caught.value.message
    assert message in caught.value.message


@pytest.mark.parametrize(("status", "cause"), [(401, "auth"), (403, "auth"), (429, "rate_limit")])
async def test_a_refusal_of_us_in_a_trial_is_not_the_servers_fault(status: int, cause: str, tmp_path: Path) -> None:
    async def answer(request: Request, _: Any) -> Response:
        return Response(status_code=status if request.method == "POST" else 405)

    with anyio.fail_after(20), serving(legacy(answer)) as served, pytest.raises(HarnessError) as caught:
        async with talking(HttpServer("web", served.url, {"X-Key": "hidden"}), tmp_path) as talk:
            await talk.session.call("echo", {}, 10)
    assert caught.value.cause == cause
    assert "hidden" not in caught.value.message
    assert cause != "auth" or "what servers.web.headers hold: X-Key" in caught.value.message


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_server_that_stops_during_a_call_ends_it_at_once(era: Era, tmp_path: Path) -> None:  # C10
    server = library()
    reached = anyio.Event()
    loop = asyncio.get_running_loop()

    @server.tool()
    async def hang() -> str:
        loop.call_soon_threadsafe(reached.set)
        await anyio.sleep(30)
        return "late"

    served = Served(server.streamable_http_app()).start()

    async def stop() -> None:
        await reached.wait()
        await anyio.to_thread.run_sync(served.stop)

    async def play() -> None:
        async with (
            talking(HttpServer("web", served.url), tmp_path, era=era) as talk,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(stop)
            await talk.session.call("hang", {}, 15)

    with anyio.fail_after(20), pytest.raises(ServerError) as caught:
        await play()
    assert caught.value.cause in ("crash", "contract_violation")


async def test_a_server_that_was_restarted_between_calls_has_lost_the_session(tmp_path: Path) -> None:  # C10
    async def play() -> None:
        served = Served(library().streamable_http_app()).start()
        async with talking(HttpServer("web", served.url), tmp_path, era="legacy") as talk:
            await anyio.to_thread.run_sync(served.stop)
            with serving(library().streamable_http_app(), served.port):
                await talk.session.call("pages", {"title": "Emma"}, 10)

    with anyio.fail_after(20), pytest.raises(ServerError, match="lost the session"):
        await play()


# --- What is no MCP server -----------------------------------------------------------------------------------------


async def test_an_address_where_nobody_listens_is_refused(tmp_path: Path) -> None:
    with serving(library().streamable_http_app()) as served:
        url = served.url
    failure = await refused(url, tmp_path)
    assert failure.message == (
        f"server 'web' broke off the handshake: cannot connect to {url}: Connection refused; is the server running?"
    )


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (Response("<html><title>Hello", 200, media_type="text/html"), "is the URL that of an MCP endpoint?"),
        (Response("OK", 200, media_type="text/plain"), "is the URL that of an MCP endpoint?"),
        (Response("nothing here", 404), "answered initialize with HTTP 404 Not Found: 'nothing here'"),
        (Response("busy", 503), "answered initialize with HTTP 503 Service Unavailable: 'busy'"),
        (Response(status_code=307, headers={"location": "/mcp"}), "a redirect to"),
    ],
)
async def test_a_url_that_is_no_mcp_server_is_refused_in_one_line(
    response: Response, message: str, tmp_path: Path
) -> None:
    async def answer(_: Request) -> Response:
        return response

    with serving(answering(answer)) as served:
        failure = await refused(f"{served.url}?key=hidden", tmp_path)
    assert failure.cause == "server_start"
    assert message in failure.message
    assert "\n" not in failure.message
    assert "hidden" not in failure.message


async def test_an_endpoint_of_the_old_transport_is_named_as_that(tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        if request.method != "GET":
            return Response(status_code=405)
        return stream("event: endpoint\ndata: /messages?session=1\n\n")

    with serving(answering(answer)) as served:
        failure = await refused(served.url, tmp_path)
    assert "HTTP+SSE transport of 2024" in failure.message
    assert "'command'" in failure.message


async def test_a_server_that_never_answers_ends_at_the_deadline(tmp_path: Path) -> None:
    async def answer(_: Request) -> Response:
        await anyio.sleep(30)
        return Response()

    with serving(answering(answer)) as served, anyio.fail_after(10), pytest.raises(ServerError) as caught:
        async with talking(HttpServer("web", served.url), tmp_path, connect_s=0.6):
            pass
    assert caught.value.message == "server 'web' did not answer the handshake within 0.6 s"


# --- Redirects, proxies, TLS ---------------------------------------------------------------------------------------


async def test_a_redirect_to_another_origin_is_refused_and_takes_no_header_there(tmp_path: Path) -> None:
    other = Recorded(library().streamable_http_app())
    with serving(other) as elsewhere:

        async def answer(_: Request) -> Response:
            return RedirectResponse(elsewhere.url, 307)

        with serving(answering(answer)) as served:
            failure = await refused(served.url, tmp_path, headers={"Authorization": "Bearer hidden"})
    assert f"a redirect to {elsewhere.url}, which is not followed with your headers" in failure.message
    assert other.requests == []


async def test_a_redirect_within_the_origin_is_followed(tmp_path: Path) -> None:
    inner = library().streamable_http_app(streamable_http_path="/")

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        async with inner.router.lifespan_context(inner):
            yield

    app = Starlette(routes=[Mount("/mcp", inner)], lifespan=lifespan)
    with anyio.fail_after(20), serving(app) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            assert (await talk.session.call("pages", {"title": "Emma"}, 10)).status == "ok"


async def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with anyio.fail_after(20), serving(library().streamable_http_app()) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            assert talk.session.name == "library"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(key_and_certificate())
    return path


async def test_tls_needs_a_certificate_that_is_trusted(certificate: Path, tmp_path: Path) -> None:
    with serving(library().streamable_http_app(), ssl_certfile=certificate) as served:
        failure = await refused(served.url, tmp_path)
        assert "is not trusted: self-signed certificate; name the CA's certificate under 'ca_file'" in failure.message
        plain = await refused(served.url.replace("https", "http"), tmp_path)
        assert "broke the connection off" in plain.message
        with anyio.fail_after(10):
            async with talking(HttpServer("web", served.url, ca_file=certificate), tmp_path) as talk:
                assert (await talk.session.call("pages", {"title": "Emma"}, 10)).status == "ok"
    with serving(library().streamable_http_app()) as served:
        failure = await refused(served.url.replace("http", "https"), tmp_path)
        assert "is it https?" in failure.message


async def test_the_wire_log_is_closed_with_the_connection(tmp_path: Path) -> None:
    with anyio.fail_after(20), serving(library().streamable_http_app()) as served:
        async with talking(HttpServer("web", served.url), tmp_path) as talk:
            wire: Wire = talk.wire
            assert not wire.closed
    assert wire.closed
