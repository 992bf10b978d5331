"""State behind an address: read at that address only, within bounds, with names that stay data."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.environment.looking import asked, environment, found
from tests.projects import DONE, play

from mcptrials.environment.remains import MAX_BYTES
from mcptrials.trial import StateValue

pytestmark = pytest.mark.anyio
ZEROS = b"0" * (1 << 20)


class Handler(BaseHTTPRequestHandler):
    """Echoes requests; special paths misbehave."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        size = int(self.headers.get("content-length", 0))
        body = self.rfile.read(size).decode()
        match urlsplit(self.path).path.split("/")[1]:
            case "status":
                self.answer(int(urlsplit(self.path).path.rpartition("/")[2]), b"line one\nline two")
            case "hop":
                self.moved("/echo")
            case "round":
                self.moved("/round")
            case "away":
                self.moved(f"http://localhost:{self.server.server_port}/echo")  # type: ignore[attr-defined]
            case "latin":
                self.answer(200, "é".encode("latin-1"), "text/plain; charset=latin-1")
            case "huge":
                self.answer(200, b"", length=MAX_BYTES + 2)
                for _ in range(17):
                    self.wfile.write(ZEROS)
            case "slow":
                self.server.released.wait(20)  # type: ignore[attr-defined]
                self.answer(200, b"{}")
            case "hangup":
                self.close_connection = True
            case _:
                seen = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body}
                self.answer(200, json.dumps(seen).encode())

    do_POST = do_HEAD = do_GET  # noqa: N815 - the names are those of the library

    def answer(self, status: int, body: bytes, kind: str = "application/json", length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    def moved(self, target: str) -> None:
        self.send_response(302)
        self.send_header("location", target)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(OSError):  # the reader had enough
            super().handle()


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.released = threading.Event()  # type: ignore[attr-defined]
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.released.set()  # type: ignore[attr-defined]
            server.shutdown()


async def test_an_address_gives_its_json_its_text_or_its_status(origin: str, tmp_path: Path) -> None:
    values = [
        (await found(tmp_path, reader)).value
        for reader in (
            {"http": f"{origin}/echo?a=1", "path": "path"},
            {"http": {"url": f"{origin}/echo", "method": "POST", "body": "x", "json_path": "body"}},
            {"http": f"{origin}/echo", "path": "no.where"},
            {"http": f"{origin}/latin", "value": "text"},
            {"http": f"{origin}/status/404", "value": "status"},
            {"http": f"{origin}/away", "value": "status"},
            {"http": f"{origin}/hop", "path": "path"},
            {"http": f"{origin}/echo", "method": "HEAD", "value": "text"},
        )
    ]
    assert values == ["/echo?a=1", "x", None, "é", 404, 302, "/echo", ""]


async def test_a_body_is_a_text_or_a_value_and_headers_are_sent(origin: str, tmp_path: Path) -> None:
    reader = {"http": f"{origin}/echo", "method": "POST", "headers": {"X-Who": "me"}, "body": {"a": [1, "b"]}}
    value = (await found(tmp_path, reader)).value
    headers = {name.lower(): text for name, text in value["headers"].items()}
    assert (value["body"], headers["content-type"], headers["x-who"]) == (
        '{"a":[1,"b"]}',
        "application/json",
        "me",
    )


async def test_names_are_data_wherever_they_stand(origin: str, tmp_path: Path) -> None:
    reader = {
        "http": f"{origin}/items/{{key}}?q={{key}}",
        "method": "POST",
        "headers": {"X-Key": "<{key}>"},
        "body": '{"key": "{key}"}',
    }
    key = 'a&b=c? #%2e "x" {trial_dir}'
    value = (await asked(tmp_path, "item {key}", reader, f"item {key}")).value
    encoded = "a%26b%3Dc%3F%20%23%252e%20%22x%22%20%7Btrial_dir%7D"
    assert value["path"] == f"/items/{encoded}?q={encoded}"
    assert json.loads(value["body"]) == {"key": key}
    assert value["headers"]["X-Key"] == f"<{key}>"
    structured = reader | {"body": {"list": ["{key}", 1]}}
    value = (await asked(tmp_path, "item {key}", structured, f"item {key}")).value
    assert json.loads(value["body"]) == {"list": [key, 1]}


@pytest.mark.parametrize("key", ["..", ".", "a/b", "a\\b", "../x"])
async def test_a_name_cannot_leave_its_step_of_the_path_but_may_be_anything_in_the_query(
    origin: str, key: str, tmp_path: Path
) -> None:
    state = await asked(tmp_path, "item {key}", {"http": f"{origin}/items/{{key}}"}, f"item {key}")
    assert state == StateValue(error=f"{key!r} may not stand in a path")
    state = await asked(tmp_path, "item {key}", {"http": f"{origin}/echo?q={{key}}", "value": "status"}, f"item {key}")
    assert state.value == 200


async def test_a_name_cannot_add_a_header(origin: str, tmp_path: Path) -> None:
    reader = {"http": f"{origin}/echo", "headers": {"X-Key": "{key}"}}
    environment_ = environment(tmp_path, readers={"item {key}": reader})
    assert environment_.spec.find_reader("item x")[1] == {"key": "x"}
    state = await asked(tmp_path, "item {key}", reader, "item a\x7fb")
    assert state.error == "'a\\x7fb' may not stand in a header"


@pytest.mark.parametrize(
    ("path", "more", "error"),
    [
        ("/status/500?token=hush", {}, "/status/500: status 500: line one line two"),
        ("/status/404", {"value": "text"}, "/status/404: status 404: line one line two"),
        ("/away", {}, "/away: it redirects to another origin, which is not followed"),
        ("/round", {}, "/round: more than 5 redirects"),
        ("/huge", {"value": "text"}, "/huge: the answer has more than 16 MiB"),
        ("/slow", {"timeout_seconds": 0.2}, "/slow: no answer within 0.2 s"),
        ("/hangup", {}, "/hangup: RemoteProtocolError"),
    ],
)
async def test_an_address_that_gives_no_good_answer_is_an_error(
    origin: str, path: str, more: dict[str, Any], error: str, tmp_path: Path
) -> None:
    state = await found(tmp_path, {"http": origin + path, **more})
    assert state.value is None
    assert str(state.error).startswith(f"GET {origin}{error}")
    assert "\n" not in str(state.error)


async def test_what_is_not_there_or_no_json_is_an_error(origin: str, tmp_path: Path) -> None:
    state = await found(tmp_path, {"http": "http://user:hush@127.0.0.1:1/x"})
    assert str(state.error).startswith("GET http://127.0.0.1:1/x: ConnectError")
    assert "Unicode" in str((await found(tmp_path, {"http": f"{origin}/latin"})).error)


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("in_place", [False, True])
async def test_a_secret_of_a_request_stands_in_no_file(in_place: bool, origin: str, tmp_path: Path) -> None:
    reader = {"http": f"{origin}/echo", "headers": {"Authorization": "Bearer s3cr3t-t0ken-77"}}
    asked_for = {"read": reader} if in_place else {"query": "echo"}
    seen = {"path": "headers.Authorization", "expected_contains": "t0ken-77"}
    task = {"id": "task", "prompt": "Do it.", "graders": [{"type": "state_check", **asked_for, **seen}]}
    (tmp_path / "http.json").write_text(json.dumps([task]), "utf-8")
    played = await play(
        tmp_path, DONE, environment={"readers": {} if in_place else {"echo": reader}}, tasks=["http.json"]
    )
    assert played.verdict == ("passed", "none", None)
    written = files_of(tmp_path / "runs")
    assert b"s3cr3t" not in written
    assert b"[secret environment.readers" in written
