"""A configured secret appears in no file and on no screen, in no spelling, and is not sent to a model's provider."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from tests.cli.preloaded import Preloaded, preloaded
from tests.cli.tiny_project import SERVER, asks, make_project, records, run_folder

TOKEN = 'tök"en\\ with/all+kinds%of&char=acters<>7f3a'
LITERAL = "sk-literal-9Qz7Lm2Xw"
API_KEY = "sk-api-key-4Tn8Rb6Vc"
SPELLINGS = ("raw", "base64", "hex", "url", "json", "letters", "dump", "lines")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preloaded]:
    """The command line with two secrets in its environment."""
    with preloaded(
        tmp_path_factory.mktemp("secrets"), TRACKER_TOKEN=TOKEN, THE_KEY=API_KEY, TENANT="customers"
    ) as running:
        yield running


def spellings(secret: str) -> set[str]:
    """How files and screens could show it; of base64 what is the same whatever stands around."""
    raw = secret.encode()
    padded = (base64.b64encode(b"." * before + raw + b"..").decode() for before in range(3))
    cores = {text[4 * (before > 0) : len(raw) * 4 // 3 - 4] for before, text in enumerate(padded)}
    urls = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return (
        {secret, raw.hex(), raw.hex().upper()} | cores | urls | escaped | {json.dumps(text)[1:-1] for text in escaped}
    )


def leaks(text: str, *secrets: str) -> list[str]:
    return [spelling for secret in secrets for spelling in spellings(secret) if spelling in text]


def test_the_search_of_this_test_finds_every_spelling() -> None:
    around = f"x{TOKEN}y".encode()
    for text in (base64.b64encode(around).decode(), around.hex(), quote(around), json.dumps(around.decode())):
        assert leaks(text, TOKEN)


def test_what_a_server_lets_slip_is_on_no_screen_in_no_file_and_stops_the_trial(
    tmp_path: Path, commands: Preloaded
) -> None:  # C78
    def tells(name: str, spelling: str) -> dict[str, object]:
        return {"steps": [{"calls": [{"tool": "tell", "args": {"name": name, "spelling": spelling}}]}, {"answer": "5"}]}

    wanted = {f"{name.lower()}-{spelling}": (name, spelling) for name in ("TOKEN", "MINE") for spelling in SPELLINGS}
    script = {task: tells(name, spelling) for task, (name, spelling) in wanted.items()}
    environment = {"TOKEN": "${TRACKER_TOKEN}", "MINE": LITERAL}
    servers = {"tiny": {"command": "{python}", "args": [str(SERVER)], "env": environment}}
    folder = make_project(tmp_path, [asks(task) for task in wanted], script, servers=servers, trials=1)

    ran = commands.run(folder, "run")
    assert ran.code == 3
    run = run_folder(folder)
    assert {(r["verdict"], r["blame"], r["cause"]) for r in records(run)} == {("invalid", "harness", "secret")}
    assert "the value of TRACKER_TOKEN was about to be sent to the model's provider" in ran.err
    page = commands.run(folder, "show", f"runs/{run.name}", "token-raw", "--full")
    assert "it is [secret TRACKER_TOKEN]." in page.out
    events = commands.run(folder, "show", f"runs/{run.name}", "mine-base64", "--json")
    assert (page.code, events.code) == (0, 0)

    files = [path for path in run.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == {run.name, "records", "transcripts", "wire"}
    texts = {str(path): path.read_text("utf-8") for path in files}
    texts |= {"screen": ran.out + ran.err, "page": page.out + page.err, "json": events.out + events.err}
    assert {name: found for name, text in texts.items() if (found := leaks(text, TOKEN, LITERAL))} == {}


def test_what_a_server_prints_before_it_dies_is_shown_without_its_secrets(tmp_path: Path, commands: Preloaded) -> None:
    dies = "import os, sys; sys.exit('cannot log in with ' + os.environ['TOKEN'])"
    servers = {"tiny": {"command": "{python}", "args": ["-c", dies], "env": {"TOKEN": "${TRACKER_TOKEN}"}}}
    folder = make_project(tmp_path, [asks("sums")], {}, servers=servers)
    (folder / "script.yaml").write_text("default: {steps: []}")
    for words in (["run"], ["run", "--json"]):
        result = commands.run(folder, *words)
        assert result.code == 2
        assert "cannot log in with [secret TRACKER_TOKEN]" in result.out + result.err
        assert leaks(result.out + result.err, TOKEN) == []


def halves(text: str, secret: str) -> list[str]:
    return [part for part in (secret[:8], secret[-8:]) if part in text]


def test_of_a_secret_across_the_cut_of_a_log_no_half_is_left(tmp_path: Path, commands: Preloaded) -> None:
    said = {"calls": [{"tool": "tell", "args": {"name": "MINE", "spelling": "noise"}}]}
    servers = {"tiny": {"command": "{python}", "args": [str(SERVER)], "env": {"MINE": LITERAL}}}
    script = {"sums": {"steps": [said, {"answer": "5"}]}}
    folder = make_project(tmp_path, [asks("sums")], script, servers=servers, trials=1)
    ran = commands.run(folder, "run")
    assert ran.code == 0
    [record] = records(run_folder(folder))
    assert "stdout_not_json" in record["server_faults"]
    transcript = (run_folder(folder) / record["transcript"]).read_text("utf-8")
    assert transcript.count("[secret servers.tiny.env.MINE]") == 3
    assert halves(transcript, LITERAL) == []


@pytest.mark.parametrize("task_id", ["customers-1", "transcript"])
def test_a_word_from_the_environment_that_our_files_hold_too_harms_no_run(
    tmp_path: Path, task_id: str, commands: Preloaded
) -> None:
    servers = {"tiny": {"command": "{python}", "args": [str(SERVER)], "env": {"TENANT": "${TENANT}"}}}
    script = {task_id: {"steps": [{"calls": [{"tool": "say", "args": {"text": "customers"}}]}, {"answer": "5"}]}}
    folder = make_project(tmp_path, [asks(task_id)], script, servers=servers, trials=1)
    assert commands.run(folder, "run", "--name", "r").code == 0
    [record] = records(run_folder(folder))
    assert (record["task_id"], record["verdict"]) == (task_id, "passed")
    shown, resumed = commands.run(folder, "show", "r"), commands.run(folder, "run", "--resume", "r")
    assert (shown.code, resumed.code) == (0, 0)
    assert "scripted, not a language model" in shown.out


def test_a_secret_in_a_name_ends_before_a_run(tmp_path: Path, commands: Preloaded) -> None:
    servers = {"tiny": {"command": "{python}", "args": [str(SERVER)], "env": {"PASSWORD": "${TENANT}"}}}
    folder = make_project(tmp_path, [asks("customers-1")], {}, servers=servers)
    refused = commands.run(folder, "run")
    assert refused.code == 2
    assert "the value of TENANT stands in the task id '[secret TENANT]-1'" in refused.err
    assert not (folder / "runs").exists()


def test_a_key_that_was_typed_is_shown_neither_in_errors_nor_in_the_command_that_goes_on(
    tmp_path: Path, commands: Preloaded
) -> None:
    key = "sk-it's-4Tn8Rb6Vc"
    folder = make_project(tmp_path, [asks("sums")], {"sums": {"steps": [{"error": {"status": 400}}]}}, trials=1)
    for words in (["run"], ["run", "--json"]):
        owed = commands.run(folder, *words, "--set", f"servers.tiny.env.KEY={key}")
        assert owed.code == 3
        assert "--set 'servers.tiny.env.KEY=[secret servers.tiny.env.KEY]'" in owed.out + owed.err
        assert halves(owed.out + owed.err, key) == []
    for typed in ([f"models={key}"], ["models[0].api_key", key]):
        refused = commands.run(folder, "run", "--set", *typed)
        assert refused.code == 2
        assert halves(refused.out + refused.err, key) == []


class Echo(BaseHTTPRequestHandler):
    """An endpoint that says its caller's key aloud: as an error first to `/dead`, else as an answer."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        said = f"you came with {self.headers['authorization']}"
        message = {"role": "assistant", "content": f"<answer>{said}</answer>"}
        reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "echo"}
        dead = self.path.startswith("/dead")
        body = {"error": {"message": said}} if dead else reply | {"choices": [{"index": 0, "message": message}]}
        self.send_response(401 if dead else 200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def echoing() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_api_key_that_a_provider_says_aloud_is_shown_and_recorded_nowhere(
    tmp_path: Path, commands: Preloaded
) -> None:
    with echoing() as url:
        model = {"model": "openai:echo", "base_url": f"{url}/v1", "api_key": "${THE_KEY}"}
        folder = make_project(tmp_path / "a", [asks("sums")], {}, models=[model], trials=1)
        ran = commands.run(folder, "run")
        dead = make_project(tmp_path / "b", [asks("sums")], {}, models=[model | {"base_url": f"{url}/dead/v1"}])
        refused = commands.run(dead, "run")
    assert (ran.code, refused.code) == (0, 2)
    assert "you came with Bearer [secret THE_KEY]" in refused.err
    [record] = records(run_folder(folder))
    assert record["answer"] == "you came with Bearer [secret THE_KEY]"
    texts = [path.read_text("utf-8") for path in run_folder(folder).rglob("*") if path.is_file()]
    assert leaks("\n".join([*texts, ran.out, ran.err, refused.out, refused.err]), API_KEY) == []
