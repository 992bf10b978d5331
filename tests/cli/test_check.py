"""`mcptrials check`: a line for each thing that can be known before a run, and an exit code that says if to run."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import adds, asks, make_project

LISTING = Path(__file__).parents[1] / "listing_server.py"
READS = {"annotations": {"readOnlyHint": True}}
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
SECRET = "sk-THISISASECRET9876"


def tool(name: str = "find", schema: Any = None, **keys: Any) -> dict[str, Any]:
    schema = schema or {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **READS, **keys}


def faulty(*faults: str, **keys: Any) -> dict[str, Any]:
    words = [word for fault in faults for word in ("--fault", fault)]
    return {"command": "{python}", "args": ["-m", "mcptrials.servers.faulty", *words], **keys}


def listing(folder: Path, tools: list[Any], *words: str, **keys: Any) -> dict[str, Any]:
    path = folder / f"tools-{len(list(folder.glob('tools-*')))}.json"
    path.write_text(json.dumps(tools))
    return {"command": "{python}", "args": [str(LISTING), str(path), *words], **keys}


def project(folder: Path, **keys: Any) -> Path:
    return make_project(folder, [asks("sums"), asks("kept", split="held_out")], {"sums": adds("5")}, **keys)


def check(commands: Preloaded, folder: Path, *words: str) -> dict[str, Any]:
    """The document of a check without requests to models."""
    ended = commands.run(folder, "check", "--offline", "--json", *words)
    assert ended.err == ""
    document = ended.document
    assert ended.code == document["exit_code"] == (0 if document["data"]["passed"] else 1)
    data: dict[str, Any] = document["data"]
    return data


def said(data: dict[str, Any], level: str, section: str = "servers", subject: str | None = None) -> list[str]:
    return [
        line["what"]
        for line in data["lines"]
        if (line["section"], line["level"]) == (section, level) and subject in (None, line["subject"])
    ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("sound")
    server = listing(folder, [tool(f"t{n}") for n in range(5)], "2")
    return project(folder, servers={"shop": server}, environment={}, variants={"base": {}, "none": "none"})


def test_a_sound_project_passes_with_a_line_for_each_thing(sound: Path, commands: Preloaded) -> None:
    ended = commands.run(sound, "check")
    assert ended.code == 0
    assert ended.err.startswith("starting shop\nplaying the reference: sums (1 of 2)\n")
    for part in (
        r"ok +mcptrials\.yaml +valid: servers shop; variants base, none",
        r"ok +tasks +2 valid, 1 of them held out",
        r"ok +environment +can be made and reset",
        r"ok +shop +started in \d+\.\d s: listing 1\.0, legacy era \(2025-11-25\); 5 tools with unique names and valid",
        r"ok +exact +for scripted:script\.yaml: 5 ok, 0 adapted, 0 rejected",
        r"ok +gemini +not used here: 5 ok",
        r"ok +scripted:script\.yaml +costs nothing; not asked",
        r"ok +run +4 trials: 1 task by 2 arms",
        r"ok +bounds +at most 80 model requests and about 800,000 tokens",
        r"\n\d+ ok, 0 warnings, 0 failed\n$",
    ):
        assert re.search(part, ended.out), part
    headings = [line for line in ended.out.splitlines() if line and not line.startswith(" ")][:-1]
    assert headings == ["files", "environment", "tasks", "servers", "providers", "models", "numbers"]


def test_the_document_says_the_same_in_numbers(sound: Path, commands: Preloaded) -> None:
    data = check(commands, sound)
    assert data["counts"]["warn"] == data["counts"]["fail"] == 0
    facts = {line["subject"]: line["facts"] for line in data["lines"] if line["section"] == "numbers"}
    assert facts["run"] == {"tasks": 1, "arms": 2, "trials": 4, "requests_max": 80, "tokens_max": 800_000}
    assert [row["tool"] for row in data["tools"]] == ["t0", "t1", "t2", "t3", "t4"]
    assert "listed its tools twice alike" in said(data, "ok")
    assert "a call of 't0' with missing arguments is answered as a tool error" in said(data, "ok")
    assert "a call of 't0' with arguments of a wrong type is answered as a tool error" in said(data, "ok")
    assert any(re.fullmatch(r"exited 0\.\d s after its input ended", line) for line in said(data, "ok"))


def test_the_kind_of_each_answer_is_told_and_which_are_guesses(tmp_path: Path, commands: Preloaded) -> None:
    dated = {"type": "exact_answer", "expected": "2024-03-05", "kind": "date"}
    tasks = [asks("sums"), asks("key", "BILL-482"), asks("day", graders=[dated])]
    data = check(commands, make_project(tmp_path / "p", tasks, {}, environment={}))
    [line] = [line for line in data["lines"] if line["subject"] == "answers"]
    assert line["what"] == "answers are compared as number (1), id (1), date (1); guessed: sums number, key id"
    assert line["facts"]["kinds"][2] == {"task": "day", "kind": "date", "guessed": False}


def test_quiet_says_only_what_is_not_well(sound: Path, commands: Preloaded) -> None:
    ended = commands.run(sound, "check", "-q")
    assert re.fullmatch(r"\d+ ok, 0 warnings, 0 failed\n", ended.out)
    assert (ended.code, ended.err) == (0, "")


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path, commands: Preloaded) -> None:
    folder = project(tmp_path / "p", trials="many")
    ended = commands.run(folder, "check")
    assert ended.code == 2
    assert re.match(r"error: \S+mcptrials\.yaml:\d+: .*trials", ended.err)
    assert commands.run(tmp_path, "check").code == 2
    assert commands.run(folder, "check", "--set", "trials=1", "--model", "nonsense").code == 2


def test_a_task_that_passes_when_nothing_is_done_is_named(tmp_path: Path, commands: Preloaded) -> None:  # C58
    (tmp_path / "state.txt").write_text("as it was")
    read = {"type": "state_check", "read": {"file": "{trial_dir}/state.txt"}}
    tasks = [
        asks("fine"),
        {"id": "idle", "prompt": "x", "graders": [read | {"expected": "as it was"}]},
        {"id": "works", "prompt": "x", "graders": [read | {"expected": "as it should be"}]},
        {"id": "meant", "prompt": "x", "graders": [read | {"expected": "as it was"}], "noop_should_pass": True},
        {"id": "refusal", "prompt": "x", "expects": "abstain", "graders": [{"type": "no_tool_call"}]},
        asks("shrug", "I do not know.", prompt="Who paints the fence?"),
        asks("both", graders=[*asks("x")["graders"], read | {"expected": "as it was"}], combine="any", prompt="y"),
    ]
    environment = {"files": {"../state.txt": "{trial_dir}/state.txt"}}
    server = {"shop": listing(tmp_path, [tool()])}
    folder = make_project(tmp_path / "p", tasks, {"default": adds("5")}, servers=server, environment=environment)
    data = check(commands, folder)
    found = {line["subject"]: (line["level"], line["what"]) for line in data["lines"] if line["section"] == "tasks"}
    assert found.pop("classes")[0] == "warn"
    nothing = "passes with no answer and without a call"
    assert "4 without a reference" in found.pop("references")[1]
    assert found.pop("tasks") == (
        "ok",
        "1 of 7 sound: agents that do nothing or guess fail; 3 references pass, alone and after the others",
    )
    assert found == {
        "idle": ("fail", nothing),
        "refusal": ("warn", nothing),
        "shrug": ("fail", "passes with the answer 'I do not know.' and without a call"),
        "both": ("fail", nothing),
    }
    assert not (folder / "state.txt").exists()


BAD = [tool("text", {"type": "string"}), {"name": "no_schema"}, {"name": "null", "inputSchema": None}, tool("good")]


def test_each_tool_that_no_client_can_use_is_named_and_the_good_ones_are_still_looked_at(
    tmp_path: Path, commands: Preloaded
) -> None:
    folder = project(tmp_path / "p", servers={"shop": listing(tmp_path, BAD)})
    data = check(commands, folder)
    assert said(data, "fail") == [
        "tool 'text' has an inputSchema whose type is 'string', not 'object'",
        "tool 'no_schema' has no object as inputSchema, but None",
        "tool 'null' has no object as inputSchema, but None",
    ]
    assert [row["tool"] for row in data["tools"]] == ["good"]
    dropping = check(commands, folder, "--set", "servers.shop.on_invalid_tool=drop")
    assert said(dropping, "fail") == []
    assert len(said(dropping, "warn")) == 3


SCHEMAS = {
    "nowhere": ({"$ref": "#/$defs/Q"}, "$.properties.q has a $ref '#/$defs/Q' that leads nowhere in the schema"),
    "away": ({"$ref": "http://127.0.0.1:9/q"}, "that leads out of the schema, and is never fetched"),
    "length": ({"minLength": "3"}, "$.properties.q has minLength '3', which should be a whole number, not negative"),
    "required": ({"required": True}, "$.properties.q has required True, which should be a list of different names"),
    "kind": ({"type": "any"}, "$.properties.q has a type 'any', which JSON Schema does not have"),
    "text": ("string", "$.properties.q is no schema but 'string'"),
}


def test_each_wrong_schema_is_named_with_its_place_also_that_of_a_result(tmp_path: Path, commands: Preloaded) -> None:
    tools = [tool(name, {"type": "object", "properties": {"q": wrong}}) for name, (wrong, _) in SCHEMAS.items()]
    tools.append(tool("result", outputSchema={"type": "object", "properties": {"n": {"maximum": "9"}}}))
    data = check(commands, project(tmp_path / "p", servers={"shop": listing(tmp_path, tools)}))
    failures = said(data, "fail", subject="shop")
    assert len(failures) == len(tools)
    for (name, (_, why)), failure in zip(SCHEMAS.items(), failures, strict=False):
        assert failure.startswith(f"tool {name!r}: inputSchema $.properties.q")
        assert failure.endswith(why)
    assert failures[-1] == "tool 'result': outputSchema $.properties.n has maximum '9', which should be a number"


def test_misbehaviour_is_told_line_by_line_and_only_broken_musts_fail(tmp_path: Path, commands: Preloaded) -> None:
    servers = {
        "noisy": faulty("banner", "stray", "ignore_eof"),
        "twice": faulty("odd_names"),
        "shuffling": listing(tmp_path, [tool("a"), tool("b")], "9", "shuffling"),
        "accepting": listing(tmp_path, [tool("a", description="")], "9", "accepting"),
    }
    data = check(commands, project(tmp_path / "p", servers=servers, environment={}))
    assert data["passed"]
    noisy = said(data, "warn", subject="noisy")
    assert "2 lines on its stdout are no messages; strict hosts refuse it: Server started ✓" in noisy
    assert any(line.startswith("did not exit when its input ended; it was terminated after 2.") for line in noisy)
    assert "left 1 process running, until killed" in noisy
    assert "tool 'has space': a name should be 1 to 128 letters, digits and _ . -" in said(
        data, "warn", subject="twice"
    )
    assert said(data, "warn", subject="shuffling") == ["listed the same tools in another order the second time"]
    assert said(data, "warn", subject="accepting") == [
        "1 tool without description: a",
        "a call of a tool it does not have is answered as if it were right",
        "a call of 'a' with missing arguments is answered as if it were right",
        "a call of 'a' with arguments of a wrong type is answered as if it were right",
    ]


def test_a_server_that_fails_costs_none_of_the_others(tmp_path: Path, commands: Preloaded) -> None:
    servers = {
        "absent": {"command": "/no/such/program"},
        "exits": faulty("exit=4", env={"API_TOKEN": SECRET}),
        "crashes": faulty("crash"),
        "hangs": faulty("hang"),
        "endless": faulty("same_cursor"),
        "changing": listing(tmp_path, [tool("a"), tool("b")], "9", "changing"),
        "once": listing(tmp_path, [tool("a")], "9", "once"),
        "good": listing(tmp_path, [tool("a")]),
    }
    began = time.monotonic()
    folder = project(tmp_path / "p", servers=servers)
    data = check(commands, folder, "--set", "limits.call_seconds=0.5", "--set", "limits.connect_seconds=3")
    assert time.monotonic() - began < 30
    failures = {line["subject"]: line["what"] for line in data["lines"] if line["level"] == "fail"}
    assert {name: what.rpartition("mcptrials.yaml:1: ")[2].partition(":")[0] for name, what in failures.items()} == {
        "absent": "servers.absent.command",
        "exits": "servers.exits",
        "crashes": "a call of a tool it does not have ends the server",
        "hangs": "a call of a tool it does not have is not answered within 0.5 s",
        "endless": "the pages of tools/list do not end",
        "changing": "listed other tools the second time",
        "once": "did not list its tools again within 3 s",
    }
    assert failures["changing"].endswith("the second time: gone: a")
    assert said(data, "fail", subject="good") == []


def test_a_tool_that_may_write_is_never_called(tmp_path: Path, commands: Preloaded) -> None:
    state = tmp_path / "memory.txt"
    server = faulty(tools={"allow": ["remember"]})
    server["args"] += ["--state", str(state)]
    data = check(commands, project(tmp_path / "p", servers={"shop": server}, environment={}))
    assert "wrong arguments were not tried: no tool that says it only reads takes a required one" in said(data, "ok")
    assert not state.exists()


ODD = {"type": "object", "properties": {"q": {"type": ["string", "null"]}, "l": {"type": "array"}}}


def test_what_each_provider_makes_of_each_tool_is_known_without_asking_a_model(
    tmp_path: Path, commands: Preloaded
) -> None:
    tools = [
        tool("plain"),
        tool("odd", ODD),
        tool("report.run"),
        tool("keyed", {"type": "object", "properties": {"a[b]": {}}}),
    ]
    models = [{"model": "openai:gpt"}, {"model": "openai:gem", "base_url": GEMINI}, "scripted:script.yaml"]
    folder = project(tmp_path / "p", servers={"shop": listing(tmp_path, tools)}, models=models)
    data = check(commands, folder)
    status = {row["tool"]: {name: each["status"] for name, each in row["providers"].items()} for row in data["tools"]}
    assert list(status["plain"]) == ["openai", "gemini", "exact", "anthropic", "llama_cpp"]
    assert set(status["plain"].values()) == {"ok"}
    assert list(status["odd"].values()) == ["adapted", "adapted", "ok", "ok", "ok"]
    assert set(status["report.run"].values()) == {"adapted"}
    assert list(status["keyed"].values()) == ["ok", "ok", "ok", "rejected", "ok"]
    odd = next(row["providers"]["gemini"] for row in data["tools"] if row["tool"] == "odd")
    assert odd["rewrites"] == [
        {"rule": "one_type", "path": "$.properties.q"}, {"rule": "one_items", "path": "$.properties.l"}
    ]  # fmt: skip
    assert data["passed"]
    worse = check(commands, folder, "--set", "models.0.schema=anthropic")
    assert said(worse, "fail", "providers") == [
        "for openai:gpt: 2 ok, 1 adapted, 1 rejected",
        "refuses shop/keyed: $ has an argument 'a[b]'; only 1 to 64 letters, digits and _ . - are taken",
    ]


def test_what_is_injected_is_looked_at_as_the_model_sees_it_and_must_go_somewhere(
    tmp_path: Path, commands: Preloaded
) -> None:
    keyed = tool("keyed", {"type": "object", "properties": {"a[b]": {}}})
    server = listing(tmp_path, [keyed]) | {"tools": {"inject": {"keyed": {"a[b]": "x"}}}}
    models = ["scripted:script.yaml", {"model": "openai:gpt", "schema": "anthropic"}]
    folder = project(tmp_path / "p", servers={"shop": server}, models=models)
    data = check(commands, folder)
    assert data["passed"]
    assert {each["status"] for each in data["tools"][0]["providers"].values()} == {"ok"}
    wrong = check(commands, folder, "--set", 'servers.shop.tools.inject={"kyed": {"a": 1}}')
    assert said(wrong, "fail") == ["it has no tool 'kyed' to inject arguments into"]


def test_what_is_announced_is_what_a_trial_shows(tmp_path: Path, commands: Preloaded) -> None:
    models = [{"model": "scripted:script.yaml", "schema": "gemini"}]
    script = {"sums": {"steps": [{"answer": "5"}]}}
    servers = {"shop": listing(tmp_path, [tool("odd", ODD)])}
    folder = make_project(tmp_path / "p", [asks("sums")], script, servers=servers, models=models, trials=1)
    [row] = check(commands, folder)["tools"]
    assert commands.run(folder, "run", "--name", "one", "-q").code == 0
    page = commands.run(folder, "show", "one", "sums-1").out
    for change in row["providers"]["gemini"]["rewrites"]:
        assert f"shown differently (schema): shop/odd {change['rule']} at {change['path']}" in page


def test_another_model_can_be_checked_for_besides_the_projects(sound: Path, commands: Preloaded) -> None:
    data = check(commands, sound, "--model", "openai:gpt", "--model", "openai:gpt")
    assert said(data, "ok", "providers")[:2] == [
        "for scripted:script.yaml: 5 ok, 0 adapted, 0 rejected",
        "for openai:gpt: 5 ok, 0 adapted, 0 rejected",
    ]
    assert said(data, "ok", "models", "openai:gpt") == ["not asked: --offline"]


@pytest.mark.parametrize(("count", "levels"), [(129, {"openai": "fail"}), (400, {"openai": "fail"}), (128, {})])
def test_too_many_tools_for_a_provider_are_counted(
    count: int, levels: dict[str, str], tmp_path: Path, commands: Preloaded
) -> None:
    server = listing(tmp_path, [tool(f"t{n}") for n in range(count)])
    folder = project(
        tmp_path / "p",
        servers={"shop": server},
        models=["openai:gpt"],
        variants={"a": {}, "b": {"shop": {"era": "legacy"}}},
    )
    data = check(commands, folder)
    found = {line["subject"]: line["level"] for line in data["lines"] if "tools at most" in line["what"]}
    assert found == levels
    if levels:
        assert f"takes 128 tools at most, and {count} are shown" in said(data, "fail", "providers")


def test_a_variant_that_starts_a_server_otherwise_is_tried_too(tmp_path: Path, commands: Preloaded) -> None:
    variants = {"base": {}, "same": {"shop": {}}, "next": {"shop": {"args": ["-c", "raise SystemExit(7)"]}}}
    data = check(commands, project(tmp_path / "p", servers={"shop": listing(tmp_path, [tool()])}, variants=variants))
    assert said(data, "fail", subject="shop") == []
    [failure] = said(data, "fail", subject="shop (next)")
    assert "exited with code 7" in failure


def test_secrets_and_control_characters_reach_no_screen(tmp_path: Path, commands: Preloaded) -> None:
    hostile = tool("a\x1b[2J\u202eb", {"type": "object", "properties": {"q": {"$ref": f"#/\x1b[31m{SECRET}"}}})
    server = listing(tmp_path, [hostile, tool("[bold]b[/]")], env={"API_TOKEN": SECRET})
    leaks = {"command": "{python}", "args": ["-c", f"import sys; sys.exit('{SECRET}')"], "env": {"API_TOKEN": SECRET}}
    folder = project(tmp_path / "p", servers={"shop": server, "leaks": leaks}, models=["openai:gpt"])
    page, document = commands.run(folder, "check", "--offline"), commands.run(folder, "check", "--offline", "--json")
    for ended in (page, document):
        assert ended.code == 1
        assert SECRET not in ended.out + ended.err
        assert "\x1b" not in ended.out + ended.err
    assert "\u202e" not in page.out
    assert "[bold]b[/]" in page.out


def test_long_lists_are_folded_on_the_screen_and_whole_in_the_document(tmp_path: Path, commands: Preloaded) -> None:
    tools = [tool(f"t.{n}", {"type": "object", "properties": {"q": {"type": "any"}}}) for n in range(40)]
    folder = project(tmp_path / "p", servers={"shop": listing(tmp_path, tools)}, models=["openai:gpt"])
    page = commands.run(folder, "check", "--offline")
    assert len(page.out.splitlines()) < 90
    assert "and 32 more (--json lists all)" in page.out
    assert "and 28 more tools (--json lists all)" in page.out
    assert len(said(check(commands, folder), "fail", subject="shop")) == 40


def test_hostile_lists_stay_within_their_time(tmp_path: Path, commands: Preloaded) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(90):
        deep = {"type": "object", "properties": {"a": deep}}
    laughs = {str(n): {"properties": {f"p{m}": {"$ref": f"#/$defs/{n + 1}"} for m in range(20)}} for n in range(20)}
    many = {"type": "object", "properties": {"q": {"$ref": "#/$defs/0"}}, "$defs": laughs | {"20": {}}}
    large = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "x" * 90} for n in range(8000)},
    }
    recursive = {"type": "object", "properties": {"self": {"$ref": "#"}}}
    tools = [tool("deep", deep), tool("many", many), tool("large", large), tool("recursive", recursive)]
    folder = project(
        tmp_path / "p", servers={"shop": listing(tmp_path, tools)}, models=[{"model": "openai:g", "base_url": GEMINI}]
    )
    began = time.monotonic()
    data = check(commands, folder)
    assert time.monotonic() - began < 20
    status = {row["tool"]: row["providers"]["gemini"]["status"] for row in data["tools"]}
    assert status == {"deep": "rejected", "many": "rejected", "large": "ok", "recursive": "adapted"}


def test_a_model_that_cannot_be_made_costs_none_of_the_others(tmp_path: Path, commands: Preloaded) -> None:
    server = listing(tmp_path, [tool()])
    folder = project(tmp_path / "p", servers={"shop": server}, models=["scripted:absent.yaml", "scripted:script.yaml"])
    data = check(commands, folder)
    assert len(said(data, "fail", "models", "scripted:absent.yaml")) == 1
    assert said(data, "ok", "models") == ["costs nothing; not asked"]


def test_the_schemas_for_editors_are_printed_without_a_project(tmp_path: Path, commands: Preloaded) -> None:
    for kind, title in (("project", "mcptrials.yaml"), ("tasks", "mcptrials tasks")):
        ended = commands.run(tmp_path, "check", "--schema", kind)
        assert (ended.code, ended.err) == (0, "")
        assert ended.document["title"] == title
        assert commands.run(tmp_path, "check", "--schema", kind, "--json").document["data"] == ended.document
