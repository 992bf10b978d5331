"""`mcptrials check` names what tasks and projects call by a wrong name: the place, the name and what was meant."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.shop_project import call, shop, task

from mcptrials.audit import Audit, Line, check_project
from mcptrials.errors import UsageError
from mcptrials.project import Project

SENT = {"type": "state_check", "query": "status of 1", "expected": "sent"}
SHIP = call("set_status", id=1, status="sent")
URL = "sqlite:///{trial_dir}/shop.db"


def audited(project: Project) -> Audit:
    return check_project(project, (), offline=True, notice=lambda _: None)


def told(audit: Audit, *sections: str) -> list[tuple[str, str, str | None]]:
    """Level, words and hint of what names a place in a file."""
    return [
        (line.level, line.what, line.fix)
        for line in audit.lines
        if line.section in sections and line.what.startswith(("tasks.json:", "mcptrials.yaml:"))
    ]


def of_task(folder: Path, *graders: Any, calls: Sequence[Any] = (SHIP,), **keys: Any) -> list[Any]:
    """What is told of one task that ships an order."""
    return told(audited(shop(folder, [task("ship", graders or [SENT], None, *calls, **keys)])), "tasks")


def read(**keys: Any) -> dict[str, Any]:
    return {"type": "state_check", "expected_absent": "nothing", **keys}


TOOLS: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "expected_tools": (
        {"expected_tools": ["set_state"]},
        "expected_tools[0]: there is no tool 'set_state'",
        "set_status",
    ),
    "behind the server": ({"expected_tools": ["shop/set_statu"]}, "no tool 'shop/set_statu'", "shop/set_status"),
    **{
        kind: (
            {"graders": [SENT, {"type": kind, "tools": ["list_orders", "get_ordr"]}]},
            "graders[1].tools[1]: there is no tool 'get_ordr'",
            "get_order",
        )
        for kind in ("required_tools", "forbidden_tools", "call_order")
    },
    "a reader's tool": (
        {"graders": [SENT, read(read={"tool": "shop/get_ordr", "args": {"id": 1}})]},
        "graders[1].read: server 'shop' has no tool 'get_ordr'",
        "get_order",
    ),
    "a reference's tool": ({"calls": [call("set_statu")]}, "reference.calls[0].tool: there is no tool", "set_status"),
    "a reference's server": (
        {"calls": [SHIP | {"server": "shp"}]},
        "reference.calls[0].server: there is no server 'shp'",
        "shop",
    ),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_is_not_there_is_named_with_its_place_and_the_nearest(tmp_path: Path, name: str) -> None:
    keys, what, meant = TOOLS[name]
    level, said, fix = of_task(tmp_path, *keys.pop("graders", ()), **keys)[0]
    assert (level, fix) == ("fail", f"did you mean {meant!r}?")
    assert said.startswith("tasks.json:1: [0].")
    assert what in said


def test_an_argument_is_held_against_the_tools_schema(tmp_path: Path) -> None:
    wrong = of_task(tmp_path / "a", calls=[call("set_status", id=1, staus="sent")])
    at = "tasks.json:1: [0].reference.calls[0].args"
    assert wrong == [
        (
            "warn",
            f"{at}.staus: tool 'set_status' takes no argument 'staus', which its server may drop without a word",
            "did you mean 'status'?",
        ),
        ("fail", f"{at}: tool 'set_status' needs the argument 'status'", "add 'status'"),
    ]
    misfit = of_task(tmp_path / "b", calls=[call("set_status", id="one", status="sent")])
    what = f"{at}.id: argument 'id' does not fit the schema of tool 'set_status': $.id: 'one' is not of type 'integer'"
    assert misfit == [("warn", what, "mend the value, or the schema")]
    held = of_task(tmp_path / "c", calls=[call("set_status", id="one", status="sent")], split="held_out")
    assert not any("'one'" in said for _, said, _ in held)


def test_a_reference_that_may_be_refused_may_leave_arguments_out(tmp_path: Path) -> None:
    gone = {"type": "exact_answer", "expected": "none"}
    assert of_task(tmp_path, gone, calls=[call("get_order")], expects="not_found") == []


def test_a_tool_that_no_model_is_shown_is_told_with_the_reason_and_the_lines_to_write(tmp_path: Path) -> None:
    answers = {"type": "exact_answer", "expected": "1250"}
    needs = {"type": "required_tools", "tools": ["set_status", "get_order"]}
    project = shop(tmp_path, [task("t", [answers, needs], "1250", call("get_order", id=1))], environment=None)
    audit = audited(project)
    denied = (
        "without an environment writes are denied, and 'set_status' may write: it does not declare readOnlyHint: true"
    )
    what = f"tasks.json:1: [0].graders[1].tools[0]: tool 'set_status' is shown to no model: {denied}"
    assert told(audit, "tasks") == [("fail", what, "see 'writes' of the environment")]
    (writes,) = [line for line in audit.lines if line.subject == "writes"]
    assert "default without an environment" in writes.what
    for words in ('environment: {files: {fixtures/app.db: "{trial_dir}/app.db"}}', "writes: allowed", "readOnlyHint"):
        assert words in (writes.fix or "")


def test_hidden_tools_may_be_forbidden_and_not_required(tmp_path: Path) -> None:
    answers = {"type": "exact_answer", "expected": "1250"}
    rules = [{"type": kind, "tools": ["set_status"]} for kind in ("forbidden_tools", "required_tools")]
    servers = {"shop": {"python": "./shop.py:make", "tools": {"hide": ["set_status"]}}}
    project = shop(tmp_path, [task("t", [answers, *rules], "1250", call("get_order", id=1))], servers=servers)
    what = "tasks.json:1: [0].graders[2].tools[0]: tool 'set_status' is shown to no model: "
    what += "servers.shop.tools.hide names 'set_status'"
    assert told(audited(project), "tasks") == [("fail", what, "take it out of there")]


def test_a_project_file_with_misspelt_places_is_told_them(tmp_path: Path) -> None:
    environment = {
        "files": {"shop.db": "{trial_dir}/shop.db"},
        "state_hash": [{"file": "{trial_dir}/shp.db"}, {"file": "{trial_dir}/log"}],
        "readers": {
            "status of {id}": {"sql": "select status from orders where id = :id", "url": URL},
            "order {id}": {"tool": "shop/get_order", "args": {"idd": "{id}"}},
        },
    }
    project = shop(tmp_path, [task("ship", [SENT], None, SHIP)], environment=environment)
    at = "mcptrials.yaml:1: environment"
    assert told(audited(project), "environment") == [
        ("fail", f"{at}.state_hash[0]: 'shp.db' is not there before a trial", "did you mean 'shop.db'?"),
        (
            "warn",
            f"{at}.state_hash[1]: 'log' is not there before a trial",
            "name a file of 'files' or one that 'reset' makes",
        ),
        (
            "warn",
            f"{at}.readers[\"order {{id}}\"]: tool 'get_order' takes no argument 'idd', which its server may drop "
            "without a word",
            "did you mean 'id'?",
        ),
    ]


PLACES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a table": (read(read={"sql": "select id from ordrs", "url": URL}), "read: there is no table 'ordrs'", "orders"),
    "a column": (read(read={"sql": "select stats from orders", "url": URL}), "no column 'stats'", "status"),
    "a database": (
        read(read={"sql": "select id from orders", "url": "sqlite:///{trial_dir}/shp.db"}),
        "read: there is no database 'shp.db'",
        "shop.db",
    ),
    "a file": (read(read={"file": "shp.db", "as": "exists"}), "read: there is no file 'shp.db'", "shop.db"),
    "a changed table": (
        {"type": "only_changes", "allow": ["shop.db/orders", "shop.db/order"]},
        "allow[1]: nothing in the database is called 'shop.db/order'",
        "shop.db/orders",
    ),
    "a changed column": (
        {"type": "only_changes", "allow": [{"in": "shop.db/*", "where": {"idd": 1}}]},
        "allow[0].where.idd: there is no column 'idd' in 'shop.db/*'",
        "id",
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_is_there_neither_before_nor_after_the_reference_is_named(tmp_path: Path, name: str) -> None:
    grader, what, meant = PLACES[name]
    level, said, fix = of_task(tmp_path, SENT, grader)[0]
    assert (level, fix) == ("fail", f"did you mean {meant!r}?")
    assert said.startswith("tasks.json:1: [0].graders[1].")
    assert what in said


def test_without_a_reference_that_shows_it_a_place_may_be_the_servers_to_make(tmp_path: Path) -> None:
    grader = read(read={"sql": "select id from ordrs", "url": URL})
    plain = {"id": "t", "prompt": "Do it.", "grader": grader}
    assert told(audited(shop(tmp_path, [plain])), "tasks") == [
        (
            "warn",
            "tasks.json:1: [0].grader.read: there is no table 'ordrs', unless the server makes it",
            "did you mean 'orders'?",
        )
    ]


def test_what_a_task_makes_itself_is_not_named(tmp_path: Path) -> None:
    note = {"type": "state_check", "read": {"file": "notes/shop.txt"}, "expected": "x"}
    rules = [
        note,
        {"type": "only_changes", "allow": ["notes/*"]},
        {"type": "state_equals_reference", "ignore": ["*.at"]},
    ]
    assert of_task(tmp_path, *rules, calls=[call("write_note", name="shop", text="x")]) == []


def test_what_is_ignored_in_vain_is_a_warning(tmp_path: Path) -> None:
    equal = {"type": "state_equals_reference", "ignore": ["shop.db/orders.changd_at", "*.changed_at", "log/*"]}
    what = "tasks.json:1: [0].graders[0].ignore[0]: nothing in the database is called 'shop.db/orders.changd_at'"
    assert of_task(tmp_path, equal) == [("warn", what, "did you mean 'shop.db/orders.changed_at'?")]


def lines_of_server(folder: Path, *args: str, **keys: Any) -> list[Line]:
    servers = {"shop": {"command": "{python}", "args": list(args)} | keys}
    audit = audited(shop(folder, [{"id": "t", "prompt": "Do it.", "grader": SENT}], servers=servers))
    return [line for line in audit.lines if line.section == "servers" and line.level != "ok"]


def test_a_server_that_does_not_start_is_told_which_of_its_words_is_wrong(tmp_path: Path) -> None:
    cases = {
        "args[0]": (("shp.py", "{trial_dir}/shop.db"), {}, "there is no file 'shp.py'; did you mean 'shop.py'?"),
        "command": ((), {"command": "no-such shop.py"}, "write 'command: no-such' and 'args: [shop.py]'"),
    }
    for key, (args, keys, fix) in cases.items():
        (line,) = lines_of_server(tmp_path / key[:4], *args, **keys)
        assert (line.level, line.fix) == ("fail", fix)
        assert line.what.startswith(f"mcptrials.yaml:1: servers.shop.{key}: server 'shop'")


def test_a_servers_paths_that_no_fixture_makes_are_told(tmp_path: Path) -> None:
    _, *warned = sorted(
        lines_of_server(tmp_path, "-c", "pass", "{trial_dir}/shp.db", "{trialdir}"), key=lambda x: x.level
    )
    assert [(line.what, line.fix) for line in warned] == [
        ("mcptrials.yaml:1: servers.shop.args[3]: {trialdir} stays as it is", "did you mean {trial_dir}?"),
        (
            "mcptrials.yaml:1: servers.shop.args[2]: there is no 'shp.db' when a trial begins, unless the server makes "
            "it",
            "did you mean 'shop.db'?",
        ),
    ]


def test_a_server_without_annotations_is_told_once_what_that_means(tmp_path: Path) -> None:
    project = shop(tmp_path, [task("ship", [SENT], None, SHIP)])
    source = (tmp_path / "shop.py").read_text("utf-8")
    (tmp_path / "shop.py").write_text(source.replace("annotations=READS, ", "").replace("annotations=WRITES, ", ""))
    (line,) = [each for each in audited(project).lines if "annotations" in each.what]
    assert (line.level, line.facts) == ("warn", {"unannotated": 4})
    assert "readOnlyHint: true" in (line.fix or "")


def test_nothing_is_said_of_planting_where_nothing_is_planted(tmp_path: Path) -> None:
    notices: list[str] = []
    drafts = [task("ship", [SENT], None, SHIP, draft=True), {"id": "t", "prompt": "Do it.", "grader": SENT}]
    check_project(shop(tmp_path, drafts), (), offline=True, notice=notices.append)
    assert not any("planting" in each for each in notices)


def test_the_key_that_the_file_has_for_its_graders_is_the_one_that_is_named(tmp_path: Path) -> None:
    rule = {"type": "required_tools", "tools": ["get_ordr"], "gate": True}
    for graders, key in (({"grader": rule}, "grader"), ({"grader": [rule]}, "grader[0]")):
        folder = tmp_path / key.replace("[", "")
        (_, said, _), *_ = told(audited(shop(folder, [{"id": "t", "prompt": "Do it.", **graders}])), "tasks")
        assert said == f"tasks.json:1: [0].{key}.tools[0]: there is no tool 'get_ordr'"


def test_defaults_are_named_where_they_stand(tmp_path: Path) -> None:
    project = shop(tmp_path, [task("ship", [SENT], None, SHIP)])
    tasks = {"defaults": {"expected_tools": ["set_statu"]}, "tasks": [task("ship", [SENT], None, SHIP)]}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    (line,) = told(audited(Project.load(project.path)), "tasks")
    assert line[1] == "tasks.json:1: defaults.expected_tools[0]: there is no tool 'set_statu'"


ASKING = """
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel


class Form(BaseModel):
    project: str


def make(trial_dir):
    server = MCPServer("shop", log_level="ERROR")

    @server.tool()
    async def create(title: str, ctx: Context) -> str:
        "Creates an issue."
        found = await ctx.elicit("Which project", Form)
        if found.action != "accept":
            raise ValueError("no project")
        return found.data.project

    return server
"""


def test_a_server_that_asks_in_vain_is_told_the_keys_that_it_needs(tmp_path: Path) -> None:
    server: dict[str, Any] = {"python": "./asking.py:make"}
    asked = task("t", [{"type": "required_tools", "tools": ["create"], "gate": True}], None, call("create", title="x"))
    fixes: list[str | None] = []
    for keys in (
        {},
        {"era": "legacy"},
        {"era": "legacy", "elicitation": "scripted", "answers": [{"content": {"project": "A"}}]},
    ):
        folder = tmp_path / str(len(fixes))
        project = shop(folder, [asked], servers={"shop": server | keys})
        (folder / "asking.py").write_text(ASKING)
        failed = [line.fix for line in audited(project).lines if (line.section, line.level) == ("tasks", "fail")]
        fixes.append(failed[0] if failed else None)
    values = "'elicitation: accept-defaults', or 'elicitation: scripted' with 'answers'"
    assert fixes == [
        "servers.shop asks by a request, which clients take up to protocol 2025-11-25 only: write 'era: legacy' "
        f"under it, with {values}; or let its tool return the question",
        f"servers.shop asks its client, and 'elicitation' says decline: write {values} under it",
        None,
    ]


def test_what_keeps_an_environment_from_being_made_is_told_where_it_stands(tmp_path: Path) -> None:
    one = [task("cents", [{"type": "exact_answer", "expected": "1250"}], "1250", call("get_order", id=1))]
    with pytest.raises(UsageError) as caught:
        audited(shop(tmp_path / "a", one, environment={"files": {"shp.db": "{trial_dir}/shop.db"}}))
    assert (caught.value.where or "").startswith('mcptrials.yaml:1: environment.files["shp.db"]')
    reset = {"files": {"shop.db": "{trial_dir}/shop.db"}, "reset": [{"sql": "delete from ordrs", "url": URL}]}
    (line,) = [
        each
        for each in audited(shop(tmp_path / "b", one, environment=reset)).lines
        if (each.section, each.level) == ("environment", "fail")
    ]
    assert line.what == "mcptrials.yaml:1: environment.reset: reset step failed: no such table: ordrs"


def test_a_function_that_is_not_there_is_told_by_the_names_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        audited(shop(tmp_path, [task("t", [SENT], None, SHIP)], servers={"shop": {"python": "./shop.py:mak"}}))
    assert caught.value.where == "mcptrials.yaml:1: servers.shop.python"
    assert "./shop.py has no 'mak'; did you mean 'make'?" in caught.value.what
    assert "_mcptrials" not in caught.value.what
