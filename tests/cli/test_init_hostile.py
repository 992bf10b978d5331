"""`mcptrials init` with secrets to keep and servers that mean harm."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.cli.preloaded import Preloaded
from tests.cli.test_init import LISTED, files_of, load, tool
from tests.cli.tiny_project import Ended, mcptrials

HARMLESS = {"LOG_LEVEL": "debug", "PORT": "8080", "VERBOSE": "true", "BASE": "https://api.example.com/v1", "EMPTY": ""}
SECRETS = {
    "MY_CREDENTIAL": "sk-THIS-one-4242",
    "DIFY_KEY": "swordfish",
    "DB": "postgres://app:pa55w0rd@db.example/app",
    "TENANT": "Kunde Nord GmbH",
    "PIN": "98761234",
    "TOKEN": "tok",
}
ARGUMENTS = [
    "--api-key",
    "correcthorse",
    "--password=hunter two",
    "--header",
    "Authorization: Bearer zzTopSecret9",
    "X-Auth:plainword",
    "-e",
    "CUSTOMER=Acme Corp",
    '--config={"apiKey": "quoted value", "depth": 3}',
    "ghp_0123456789abcdefghij",
    "550e8400-e29b-41d4-a716-446655440000",
    "https://hooks.example.com/s/aB3dE5gH7jK9mN1pQ3/mcp?signature=0a1b2c3d",
    "app:geheim99@tcp(db:3306)/app",
    "c3dvcmRmaXNo",  # base64 of another value of this file
]
VALUES = [
    *SECRETS.values(),
    *("correcthorse", "hunter two", "zzTopSecret9", "plainword", "Acme Corp", "quoted value", "ghp_0123456789"),
    *("550e8400", "aB3dE5gH7jK9mN1pQ3", "0a1b2c3d", "c3dvcmRmaXNo", "pa55w0rd", "geheim99"),
]


def shown_and_written(folder: Path, ended: Ended) -> str:
    files = [text.decode() for name, text in files_of(folder).items() if not name.endswith(".json")]
    return "\n".join([*files, ended.out, ended.err])


def write_client_file(folder: Path, tools: list[Any]) -> None:
    (folder / "tools.json").write_text(json.dumps(tools))
    env = HARMLESS | SECRETS
    server = {"command": sys.executable, "args": [str(LISTED), "tools.json", *ARGUMENTS], "env": env}
    headers = {"Authorization": "Basic YWxhZGRpbjpvcGVu", "X-Api": "hm", "Accept": "application/json"}
    web = {"url": "http://127.0.0.1:9/mcp?token=inTheUrl7", "headers": headers}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": server, "web": web}}))


def test_no_value_of_a_secret_is_written_or_shown_though_the_server_repeats_it(
    commands: Preloaded, tmp_path: Path
) -> None:
    write_client_file(tmp_path, [tool("get", "told $DIFY_KEY and $TENANT"), tool("see_swordfish", "$DB $PIN")])
    ended = commands.run(tmp_path, "init", "--server", "shop")
    assert ended.code == 0, ended.err
    everything = shown_and_written(tmp_path, ended)
    assert [value for value in VALUES if value in everything.replace("TOKEN=", "")] == ["tok"]  # as in "tokens"
    assert "told [secret DIFY_KEY] and [secret TENANT]" in everything
    variables = {name: f"value-{name}" for name in SECRETS}
    text = (tmp_path / "mcptrials.yaml").read_text()
    assert all(f'{name}: "${{{name}}}"' in text for name in SECRETS)
    named = {
        line.split("=")[0].removeprefix("export ") for line in ended.out.splitlines() if line.startswith("export ")
    }
    assert named >= set(SECRETS)
    loaded = load(tmp_path, **dict.fromkeys(named, "x") | variables).config.servers["shop"]
    assert {name: loaded.env[name] for name in HARMLESS} == HARMLESS
    assert {name: loaded.env[name] for name in SECRETS} == variables
    assert loaded.args[2:7] == ("--api-key", "x", "--password=x", "--header", "Authorization: Bearer x")
    assert loaded.args[10] == '--config={"apiKey": "x", "depth": 3}'


def test_headers_and_urls_keep_their_secrets_too(commands: Preloaded, tmp_path: Path) -> None:
    write_client_file(tmp_path, [])
    ended = commands.run(tmp_path, "init", "--offline", "--json")
    assert ended.code == 0, ended.err
    everything = shown_and_written(tmp_path, ended)
    found = [value for value in (*VALUES, "YWxhZGRpbjpvcGVu", "inTheUrl7") if value in everything]
    assert found == ["tok"]
    assert "Accept" not in everything  # the client's own
    assert 'Authorization: "Basic ${WEB_TOKEN}"' in everything
    assert 'X-Api: "${X_API}"' in everything


def test_an_error_that_quotes_a_secret_is_scrubbed(commands: Preloaded, tmp_path: Path) -> None:
    program = "import os, sys; sys.exit('bad key ' + os.environ['DIFY_KEY'])"
    server = {"command": sys.executable, "args": ["-c", program], "env": {"DIFY_KEY": "swordfish"}}
    (tmp_path / "x.json").write_text(json.dumps({"mcpServers": {"shop": server}}))
    for words in ([], ["--json"]):
        ended = commands.run(tmp_path, "init", "--from", "x.json", *words)
        assert ended.code == 2
        assert "bad key [secret DIFY_KEY]" in ended.out + ended.err
        assert "swordfish" not in ended.out + ended.err


def test_equal_names_with_different_values_are_different_variables(tmp_path: Path) -> None:
    servers = {
        name: {"command": "x", "env": {"API_KEY": value, "GIVEN": "mine-1"}}
        for name, value in {"one": "first-1", "two": "second-2", "three": "first-1"}.items()
    }
    (tmp_path / "x.json").write_text(json.dumps({"mcpServers": servers}))
    ended = mcptrials(tmp_path, "init", "--offline", "--from", "x.json", GIVEN="another-1")
    assert ended.code == 0, ended.err
    project = load(tmp_path, API_KEY="1", TWO_API_KEY="2", ONE_GIVEN="3")
    assert [each.env["API_KEY"] for each in project.config.servers.values()] == ["1", "2", "1"]
    assert {each.env["GIVEN"] for each in project.config.servers.values()} == {"3"}
    servers = {"four": {"command": "x", "env": {"API_KEY": "third-3"}}}
    (tmp_path / "y.json").write_text(json.dumps({"mcpServers": servers}))
    assert mcptrials(tmp_path, "init", "--offline", "--from", "y.json").code == 0
    assert 'API_KEY: "${FOUR_API_KEY}"' in (tmp_path / "mcptrials.yaml").read_text()


HOSTILE = (
    "x\ny: &a [*a]\n- !!python/object:os\r\n'\"{% \x1b[2J\x1b]0;owned\x07"
    "\u2028\u202e\x85 # :\t\ud83d \0 ${HOME} {trial_dir}"
)


def test_hostile_names_and_descriptions_break_neither_the_files_nor_the_terminal(
    commands: Preloaded, tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {HOSTILE[:40]: {"type": [HOSTILE]}}, "required": [HOSTILE[:40], 5, "a"]}
    tools = [
        {"name": f"get {HOSTILE[:-30]}", "description": HOSTILE * 1000, "inputSchema": schema},
        {"name": "n" * 100_000, "description": "d" * 100_000, "inputSchema": {"type": "object", "required": "x"}},
        {"name": "---", "description": "...\n---\n", "inputSchema": {"type": "object", "properties": []}},
        {"name": "null", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    ]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    name = "s\n\x1b[31m: {"
    server = {"command": sys.executable, "args": [str(LISTED), "tools.json", HOSTILE[:-40].replace("\0", "")]}
    (tmp_path / "x.json").write_text(json.dumps({"mcpServers": {name: server}}))
    ended = commands.run(tmp_path, "init", "--from", "x.json")
    assert ended.code == 0, ended.err
    project = load(tmp_path, HOME="/home")
    assert list(project.config.servers) == [name]
    assert project.config.servers[name].args[2] == server["args"][2]
    assert project.config.servers[name].tools.allow == ("null",)
    assert len(project.suite.tasks) == 3
    written = [text.decode() for path, text in files_of(tmp_path).items() if path.endswith(".yaml")]
    for text in (*written, ended.out, ended.err):
        assert all(char.isprintable() or char == "\n" for char in text)
        assert len(text) < 500_000


def test_many_tools_leave_a_file_that_can_be_read(commands: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([tool(f"get_{n}") for n in range(400)]))
    assert commands.run(tmp_path, "init", "--server", "s", "--", sys.executable, str(LISTED), "tools.json").code == 0
    assert len((tmp_path / "mcptrials.yaml").read_text().splitlines()) < 100


def test_a_variable_that_a_client_fills_in_from_the_servers_own_env_stays_one_variable(
    commands: Preloaded, tmp_path: Path
) -> None:
    (tmp_path / "tools.json").write_text("[]")
    args = [str(LISTED), "tools.json", "--header", "Authorization:${AUTH_HEADER}"]
    server = {"command": sys.executable, "args": args, "env": {"AUTH_HEADER": "Bearer abcd1234"}}
    (tmp_path / "x.json").write_text(json.dumps({"mcpServers": {"remote": server}}))
    ended = commands.run(tmp_path, "init", "--from", "x.json")
    assert ended.code == 0, ended.err
    assert "abcd1234" not in shown_and_written(tmp_path, ended)
    written = load(tmp_path, AUTH_HEADER="Bearer new").config.servers["remote"]
    assert (written.args[-1], written.env) == ("Authorization:Bearer new", {"AUTH_HEADER": "Bearer new"})


def test_a_broken_list_is_said_and_how_a_run_goes_on_without_the_broken_tools(
    commands: Preloaded, tmp_path: Path
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([tool("get"), {"name": "bad"}]))
    ended = commands.run(tmp_path, "init", "--server", "s", "--", sys.executable, str(LISTED), "tools.json")
    assert ended.code == 0
    assert "warning: server 's': tool 'bad' has no object as inputSchema" in ended.err
    assert "# on_invalid_tool: drop\n" in (tmp_path / "mcptrials.yaml").read_text()


def test_a_stop_between_the_two_files_is_made_good_by_the_next_run(commands: Preloaded, tmp_path: Path) -> None:
    words = ["init", "--offline", "--server", "2048", "--", "x"]
    assert commands.run(tmp_path, *words).code == 0
    whole = files_of(tmp_path)
    (tmp_path / "mcptrials.yaml").unlink()
    assert commands.run(tmp_path, *words).code == 0
    assert files_of(tmp_path) == whole


def test_a_link_that_leads_nowhere_is_not_followed(commands: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "mcptrials.yaml").symlink_to(tmp_path / "elsewhere" / "x.yaml")
    ended = commands.run(tmp_path, "init", "--offline", "--", "x")
    assert ended.code == 2
    assert "the file is a link that leads nowhere" in ended.err
    assert files_of(tmp_path) == {}
