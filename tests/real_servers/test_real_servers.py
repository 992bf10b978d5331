"""Servers that nobody here wrote, each evaluated through the command line."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.real_servers.catalogue import SERVERS, Call, RealServer
from tests.real_servers.evaluating import evaluate, require, write_json
from tests.real_servers.table import ROWS, Row

pytestmark = pytest.mark.real_servers


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web server on this machine with one page."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "page.html").write_text("<html><body><p>The ferry leaves at 06:40.</p></body></html>", "utf-8")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(timeout=10)


def asked(call: Call, pages: str) -> dict[str, Any]:
    args = {
        key: value.replace("{pages}", pages) if isinstance(value, str) else value for key, value in call.args.items()
    }
    return {"tool": call.tool, "args": args}


def write_project(folder: Path, server: RealServer, pages: str) -> Path:
    checks = [{"type": "state_check", "query": query, "expected": value} for query, value in server.state.items()]
    task = {"id": "task", "prompt": "Do it.", "graders": [{"type": "exact_answer", "expected": "done"}, *checks]}
    steps = [*({"calls": [asked(call, pages)]} for call in server.calls), {"answer": "done"}]
    write_json(folder / "script.json", {"version": 1, "tasks": {"task": {"steps": steps}}})
    write_json(folder / "tasks.json", [task])
    project = {
        "version": 1,
        "servers": {server.name: server.started_by},
        "environment": server.environment,
        "models": ["scripted:script.json"],
        "trials": 2,
        "tasks": ["tasks.json"],
    }
    return write_json(folder / "mcptrials.yaml", project)


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_both_trials_pass_with_what_the_server_is_known_to_answer(
    server: RealServer, tmp_path: Path, pages: str, pytestconfig: pytest.Config
) -> None:
    require(server)
    run = evaluate(write_project(tmp_path, server, pages), tmp_path).run
    records = run.records()
    assert [(record.verdict, record.cause) for record in records] == [("passed", None)] * 2
    for record in records:
        transcript = run.transcript(record)
        answers = [made.answer for made in transcript.calls]
        for call, answer in zip(server.calls, answers, strict=True):
            assert answer is not None
            assert answer.status == ("tool_error" if call.error else "ok")
            assert call.shows in answer.shown
        assert transcript.violations == ()
        [gone] = transcript.exits
        assert (gone.how in ("closed", "terminated"), gone.left_processes) == (True, 0)
    started = [run.transcript(record).servers[0] for record in records]
    fastest = min(started, key=lambda event: event.ms)
    row = Row(server.package, server.version, str(fastest.protocol_version), fastest.tool_count, fastest.ms)
    pytestconfig.stash[ROWS].append(row)
