"""`mcptrials init`, by the real command line and real servers: what it writes, says and refuses."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import SERVER, mcptrials

from mcptrials.project import Project

LISTED = SERVER.with_name("listed_server.py")
PYTHON = sys.executable


def tool(name: str, description: str = "", **hints: bool) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    return {"name": name, "description": description, "annotations": hints, "inputSchema": schema}


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def load(folder: Path, file: str = "mcptrials.yaml", **environ: str) -> Project:
    return Project.load(folder / file, environ=environ)


LOADABLE = b"version: 1\nservers:\n  one: {command: x}\nmodels: [scripted:s.yaml]\ntasks: [tasks/*.yaml]\n"


def tiny(**keys: Any) -> dict[str, Any]:
    """A client's entry for the tiny server."""
    return {"command": PYTHON, "args": [str(SERVER)], **keys}


def test_a_command_line_becomes_a_project_that_loads(commands: Preloaded, tmp_path: Path) -> None:
    ended = commands.run(tmp_path, "init", "--json", "--", PYTHON, str(SERVER), "--flag", "--json")
    assert ended.code == 0
    [server] = ended.document["data"]["servers"]
    assert (server["name"], server["transport"], server["era"]) == ("tiny_server", "stdio", "legacy")
    assert server["tools"] == ["add", "say", "tell"]
    assert server["definition_tokens"] > 50
    assert server["startup_ms"] > 0
    assert server["instructions"] is False
    created = [Path(path).relative_to(tmp_path).as_posix() for path in ended.document["data"]["files"]["created"]]
    assert created == ["mcptrials.yaml", "tasks/draft.yaml"]
    project = load(tmp_path)
    assert project.config.servers["tiny_server"].args == (str(SERVER), "--flag", "--json")
    assert [model.model for model in project.config.models] == ["local:qwen2.5-coder-1.5b"]
    assert all(task.draft for task in project.suite.tasks)
    assert [task.id for task in project.suite.tasks] == [
        "tiny_server-read",
        "tiny_server-two-calls",
        "tiny_server-no-call",
    ]
    assert project.suite.tasks[0].expected_tools == ("add",)
    assert project.suite.tasks[2].expects == "abstain"


def test_init_and_check_tell_one_size_of_what_models_are_shown(commands: Preloaded, tmp_path: Path) -> None:
    shown = {"name": "get", "description": "Gets \u00e4 thing.", "inputSchema": {"type": "object"}}
    unseen = {"outputSchema": {"type": "object", "description": "x" * 4000}, "annotations": {"readOnlyHint": True}}
    (tmp_path / "tools.json").write_text(json.dumps([shown | unseen]))
    ended = commands.run(tmp_path, "init", "--json", "--server", "shop", "--", PYTHON, str(LISTED), "tools.json")
    [server] = ended.document["data"]["servers"]
    checked = commands.run(tmp_path, "check", "--offline", "--json").document["data"]["lines"]
    [size] = [line["facts"] for line in checked if "tokens_estimated" in (line["facts"] or {})]
    assert size["bytes"] == len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode())
    assert server["definition_tokens"] == size["tokens_estimated"] == round(size["bytes"] / 4)


def test_it_says_what_it_found_and_what_comes_next(commands: Preloaded, tmp_path: Path) -> None:
    tools = [tool(f"get_{n}", readOnlyHint=True) for n in range(5)]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    ended = commands.run(tmp_path, "init", "--server", "shop", "--", PYTHON, str(LISTED), "tools.json")
    assert re.search(
        r"^server shop: stdio, legacy protocol [\d-]+, 5 tools, about [\d,]+ tokens of definitions, "
        r"instructions, started in \d+\.\d s",
        " ".join(ended.out.split("\n")),
    )
    assert "wrote mcptrials.yaml, tasks/draft.yaml\n" in ended.out
    assert "environment" not in ended.out  # nothing writes
    assert "drafts, and remove 'draft: true'\nnext: mcptrials check, and then: mcptrials run\n" in ended.out
    assert ended.err == "starting shop\n"

    (tmp_path / "tools.json").write_text(json.dumps([*tools, tool("put")]))
    ended = commands.run(tmp_path, "init", "--into", "p", "--server", "shop", "--", PYTHON, str(LISTED), "tools.json")
    assert "next: declare an 'environment' in p/mcptrials.yaml: without one, tools that may write are not" in ended.out


CLIENT_FILES = {
    ".mcp.json": '{"mcpServers": {"tiny": %s}}',
    ".vscode/mcp.json": '{\n// VS Code\n"inputs": [], "servers": {"tiny": %s,},\n}',
    ".cursor/mcp.json": '{"mcpServers": {"tiny": %s} /* "//" */ }',
}


@pytest.mark.parametrize("name", CLIENT_FILES)
def test_without_a_source_the_clients_file_of_the_folder_is_used_and_named(
    commands: Preloaded, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(CLIENT_FILES[name] % json.dumps(tiny(type="stdio", note="// kept", autoApprove=[])))
    ended = commands.run(tmp_path, "init")
    assert ended.code == 0
    assert ended.err.startswith(f"servers of {name}\nstarting tiny\n")
    assert "server 'tiny': 'note', 'autoApprove' is not used here" in ended.err
    assert load(tmp_path).config.servers["tiny"].command == PYTHON


def test_claude_desktops_file_is_read_and_one_server_can_be_chosen(commands: Preloaded, tmp_path: Path) -> None:
    servers = {"broken": {"command": "no-such-command"}, "tiny": tiny(), "off": tiny(disabled=True)}
    path = tmp_path / "claude_desktop_config.json"
    path.write_text(json.dumps({"globalShortcut": "x", "mcpServers": servers}))
    ended = commands.run(tmp_path, "init", "--from", path.name, "--server", "tiny", "--into", "evals")
    assert ended.code == 0
    assert ended.out.endswith(
        "next: mcptrials check --project evals/mcptrials.yaml, and then: mcptrials run --project evals/mcptrials.yaml\n"
    )
    project = load(tmp_path / "evals")
    assert list(project.config.servers) == ["tiny"]
    assert project.config.servers["tiny"].cwd == ".."


def test_placeholders_of_clients_become_variables_or_what_they_stand_for(tmp_path: Path) -> None:
    env = {
        "KEY": "${input:api-key}",
        "REGION": "${env:REGION}",
        "SIZE": "${SIZE:-20}",
        "ROOT": "${workspaceFolder}/data",
        "ODD": "${command:pick}",
    }
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "mcp.json").write_text(json.dumps({"servers": {"tiny": tiny(env=env)}}))
    ended = mcptrials(tmp_path, "init", "--json", API_KEY="zvalue9", REGION="north")
    assert ended.code == 0, ended.err
    assert [each["name"] for each in ended.document["data"]["variables"]] == ["API_KEY", "REGION"]
    assert any("${command:pick} means nothing here" in warning for warning in ended.document["warnings"])
    written = load(tmp_path, API_KEY="k", REGION="r").config.servers["tiny"].env
    assert written == {"KEY": "k", "REGION": "r", "SIZE": "20", "ROOT": "{project_dir}/data", "ODD": "${command:pick}"}


def test_a_variable_without_a_value_is_named_before_anything_starts(commands: Preloaded, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"tiny": tiny(env={"A": "${input:no-such}"})}}))
    ended = commands.run(tmp_path, "init")
    assert ended.code == 2
    assert "server 'tiny': the environment variable 'NO_SUCH' is not set; export NO_SUCH=..." in ended.err
    assert list(files_of(tmp_path)) == [".mcp.json"]


def test_a_server_that_does_not_start_leaves_nothing_unless_offline(commands: Preloaded, tmp_path: Path) -> None:
    command = [PYTHON, "-c", "import sys; sys.exit('cannot open the database')"]
    ended = commands.run(tmp_path, "init", "--server", "shop", "--", *command)
    assert ended.code == 2
    assert re.fullmatch(
        r"starting shop\nerror: server 'shop' exited with code 1 .*cannot open the database; .*--offline\n", ended.err
    )
    assert files_of(tmp_path) == {}
    ended = commands.run(tmp_path, "init", "--offline", "--server", "shop", "--", *command)
    assert ended.code == 0
    assert "server shop: stdio, not started\n" in ended.out
    project = load(tmp_path)
    assert project.config.servers["shop"].args == tuple(command[1:])
    assert len(project.suite.tasks) == 3


def test_a_server_by_url_is_written_with_its_secrets_as_variables(commands: Preloaded, tmp_path: Path) -> None:
    url = "https://ann:hunter2x@mcp.example.com/mcp?region=eu&apiKey=zzz999#top"
    ended = commands.run(tmp_path, "init", "--offline", "--url", url)
    assert ended.code == 0
    text = (tmp_path / "mcptrials.yaml").read_text()
    assert 'url: "https://ann:${MCP_PASSWORD}@mcp.example.com/mcp?region=eu&apiKey=${API_KEY}"' in text
    assert "export MCP_PASSWORD=..." in ended.out


def test_a_second_run_adds_what_is_new_and_changes_no_other_byte(commands: Preloaded, tmp_path: Path) -> None:
    before = (
        b"# ours\r\nversion: 1\r\nservers:\r\n   one:   {command: 'x'}  # first\r\n\r\n"
        b"models:\r\n- scripted:s.yaml\r\ntasks: [tasks/*.yaml]  # all"
    )
    (tmp_path / "mcptrials.yaml").write_bytes(before)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "draft.yaml").write_text("- id: mine\n  prompt: p\n  grader: {type: no_tool_call}\n")
    mine = (tmp_path / "tasks" / "draft.yaml").read_bytes()
    servers = {"one": {"command": "other"}, "two": tiny(), "a: b\n#": tiny()}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    ended = commands.run(tmp_path, "init")
    assert ended.code == 0, ended.err
    assert "server one: is in mcptrials.yaml already and was left as it is" in ended.out
    assert "added to mcptrials.yaml\nleft as they are: tasks/draft.yaml\n" in ended.out
    after = (tmp_path / "mcptrials.yaml").read_bytes()
    start = after.index(b"   # stdio, ")
    end = len(after) - len(before) + start
    assert after[:start] + after[end:] == before
    assert b"\n" not in after.replace(b"\r\n", b"")
    assert (tmp_path / "tasks" / "draft.yaml").read_bytes() == mine
    project = load(tmp_path)
    assert list(project.config.servers) == ["one", "two", "a-b"]
    assert [task.id for task in project.suite.tasks] == [
        *(f"{server}-{kind}" for server in ("two", "a-b") for kind in ("read", "two-calls", "no-call")),
        "mine",
    ]
    assert project.suite.tasks[0].expected_tools == ("two/add",)
    third = files_of(tmp_path)
    assert commands.run(tmp_path, "init").code == 0
    assert files_of(tmp_path) == third


def test_a_project_that_cannot_be_extended_is_left_alone(commands: Preloaded, tmp_path: Path) -> None:
    for text in ("version: 1\nservers:\n", "servers: &a {x: {command: y}}\nvariants: {}\nservers: 1", "- 1\n"):
        (tmp_path / "mcptrials.yaml").write_text(text)
        ended = commands.run(tmp_path, "init", "--", PYTHON, str(SERVER))
        assert ended.code == 2
        assert ended.err.count("\n") == 1
        assert files_of(tmp_path) == {"mcptrials.yaml": text.encode()}


def test_reading_tools_are_proposed_while_no_environment_is_declared(commands: Preloaded, tmp_path: Path) -> None:
    tools = [
        tool("list_items", readOnlyHint=True),
        tool("get_item"),
        tool("delete_item"),
        tool("get_and_purge"),
        tool("search", destructiveHint=True),
    ]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    assert commands.run(tmp_path, "init", "--server", "s", "--", PYTHON, str(LISTED), "tools.json").code == 0
    text = (tmp_path / "mcptrials.yaml").read_text()
    assert load(tmp_path).config.servers["s"].tools.allow == ("list_items",)
    assert "# - get_item  # its name sounds like reading: check that" in text
    assert "# may write, so they need an 'environment': delete_item, get_and_purge, search" in text
    [_, write, _] = load(tmp_path).suite.tasks
    assert write.id == "s-write"
    assert write.expected_tools == ("list_items", "delete_item")
    assert "state_check" in (tmp_path / "tasks" / "draft.yaml").read_text()


def test_the_proposed_environment_loads_once_it_is_uncommented(commands: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "shop.db").touch()
    (tmp_path / "docs").mkdir()
    words = [PYTHON, str(SERVER), "--db", "shop.db", "--root=./docs", "notes.json"]
    assert commands.run(tmp_path, "init", "--into", "evals", "--", *words).code == 0
    path = tmp_path / "evals" / "mcptrials.yaml"
    text = path.read_text()
    section = text[text.index("# environment:") : text.index("models:")]
    path.write_text(text.replace(section, re.sub(r"(?m)^# ", "", section)))
    environment = load(tmp_path / "evals").config.environment
    assert environment is not None
    assert environment.files == {
        "../shop.db": "{trial_dir}/shop.db",
        "../docs": "{trial_dir}/docs",
        "../notes.json": "{trial_dir}/notes.json",
    }
    assert len(environment.readers) == 3
    assert "it works on shop.db: with a copy under 'environment.files' write {trial_dir}/shop.db instead" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "x.json:1: not valid JSON"),
        ("[]", "lists no MCP servers"),
        ('{"mcpServers": {}}', "lists no MCP servers"),
        ('{"mcpServers": {"a": 1}}', "x.json:1: mcpServers.a: a server is an object"),
        ('{"mcpServers": {"a": {}}}', "has neither 'command' nor 'url'"),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://h"}}}', "has both 'command' and 'url'"),
        ('{"mcpServers": {"a": {"command": "x",\n"args": "y"}}}', "x.json:2: mcpServers.a.args: should be a list"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": []}}}}', "mcpServers.a.env.A: should be text"),
        ('{"mcpServers": {"a": {"command": "x", "type": "ws"}}}', "of type 'ws'"),
        ('{"mcpServers": {"a": {"command": "x", "disabled": true}}}', "no server that could be used"),
        ('{"mcpServers": {"alpha": {"command": "x"}}}', "it lists no server 'alpa'; did you mean 'alpha'?"),
    ],
)
def test_a_clients_file_that_cannot_be_used_is_said_in_one_line(
    commands: Preloaded, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "x.json").write_text(text)
    chosen = ["--server", "alpa"] if "alpha" in text else []
    ended = commands.run(tmp_path, "init", "--offline", "--from", "x.json", *chosen)
    assert ended.code == 2
    assert re.fullmatch(r"error: [^\n]+\n", ended.err)
    assert said in ended.err
    assert list(files_of(tmp_path)) == ["x.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no server is named, and the folder has no .mcp.json"),
        (["--url", "ftp://x"], "--url takes the address of an HTTP server"),
        (["--url", "http://[1"], "--url takes the address of an HTTP server"),
        (["--url", "http://x", "--", "y"], "a command and --url are given"),
        (["--set", "a=b", "--", "y"], "--set does not go with init"),
        (["--project", "p.json", "--", "y"], "init writes YAML only"),
        (["--from", "nope.json"], "nope.json: the file does not exist"),
    ],
)
def test_wrong_words_are_said_in_one_line(commands: Preloaded, tmp_path: Path, words: list[str], said: str) -> None:
    ended = commands.run(tmp_path, "init", *words)
    assert ended.code == 2
    assert said in ended.err
    assert files_of(tmp_path) == {}


def test_names_that_a_project_does_not_allow_are_made_ones_that_it_does(commands: Preloaded, tmp_path: Path) -> None:
    listed = {name: tiny() for name in ("my server", "my-server", "My-Server", "Ünï", "x" * 70)}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": listed}))
    ended = commands.run(tmp_path, "init", "--json")
    assert ended.code == 0, ended.err
    assert list(load(tmp_path).config.servers) == ["my-server-2", "my-server", "My-Server-3", "n", "x" * 60]
    assert "server 'my server' is called 'my-server-2' here" in ended.document["warnings"]


def test_a_server_whose_name_begins_ids_like_another_gets_its_drafts(commands: Preloaded, tmp_path: Path) -> None:
    for name in ("shop", "shop-"):
        ended = commands.run(tmp_path, "init", "--json", "--offline", "--server", name, "--", "x")
        assert (ended.code, ended.document["data"]["drafts"]) == (0, 3)
    ids = [task.id for task in load(tmp_path).suite.tasks]
    assert len(ids) == 6
    assert {id_.rpartition("-")[0] for id_ in ids if id_.endswith("-read")} == {"shop", "shop-2"}


def test_a_draft_that_a_task_file_has_already_is_left_out_and_named(commands: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mine.yaml").write_text("- id: shop-read\n  prompt: p\n  grader: {type: no_tool_call}\n")
    ended = commands.run(tmp_path, "init", "--json", "--offline", "--server", "shop", "--", "x")
    assert (ended.code, ended.document["data"]["drafts"]) == (0, 2)
    assert "no draft is written of what the task files have already: shop-read" in ended.document["warnings"]


@pytest.mark.parametrize(
    ("name", "entry", "said"),
    [
        ("h", {"url": "http://u:pw-9-xyz@h/mcp", "headers": {"Authorization": "Bearer a1b2c3d4e5"}}, "say who we are"),
        ("h", {"url": "http://h/mcp", "headers": {"X A": "b"}}, "servers.h.headers"),
        ("h", {"url": "http://h/mcp", "headers": {"X-A": "ü"}}, "servers.h.headers"),
        ("h", {"url": "ftp://h/mcp"}, "servers.h.url"),
        ("h", {"command": ""}, "command"),
    ],
)
@pytest.mark.parametrize("before", [{}, {"mcptrials.yaml": LOADABLE}])
def test_what_could_not_be_loaded_is_not_written(
    commands: Preloaded, tmp_path: Path, name: str, entry: dict[str, Any], said: str, before: dict[str, bytes]
) -> None:
    for path, text in before.items():
        (tmp_path / path).write_bytes(text)
    (tmp_path / "mcp.json.txt").write_text(json.dumps({"mcpServers": {name: entry}}))
    ended = commands.run(tmp_path, "init", "--from", "mcp.json.txt")
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.splitlines()[-1].startswith("error: ")
    assert "pw-9-xyz" not in ended.err
    assert "by hand" not in ended.err
    (tmp_path / "mcp.json.txt").unlink()
    assert files_of(tmp_path) == before


def test_a_server_by_url_that_is_not_there_is_not_to_be_run_by_hand(commands: Preloaded, tmp_path: Path) -> None:
    ended = commands.run(tmp_path, "init", "--url", "http://127.0.0.1:9/mcp")
    assert ended.code == 2
    assert "check the address, its headers and that it runs, choose another" in ended.err
    assert files_of(tmp_path) == {}
