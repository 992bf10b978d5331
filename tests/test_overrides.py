"""Overrides: another wording for the model, the same server behind it."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.projects import DONE, Played, call, calls, write_project

from mcptrials.comparison import compare
from mcptrials.errors import UsageError
from mcptrials.events import PresentationChange, PromptGiven
from mcptrials.overrides import Overrides, check
from mcptrials.presentation import ToolFilter, present_tools
from mcptrials.project import Project
from mcptrials.report import summarise
from mcptrials.runner import run_async

pytestmark = pytest.mark.anyio

SHOP = """
from mcp.server import MCPServer


def shop():
    server = MCPServer("shop", instructions="Sell.")

    @server.tool(description="Search.")
    def search(text: str, limit: int = 3) -> str:
        return f"found {text}"

    @server.tool(description="Buy.")
    def buy(item: str) -> str:
        return f"bought {item}"

    return server
"""


def shop_project(folder: Path, steps: Any, told: Any, variant: Any = None, **keys: Any) -> Project:
    """One task on the shop, whose one variant has these overrides."""
    (folder / "shop.py").write_text(SHOP)
    (folder / "overrides.yaml").write_text(told if isinstance(told, str) else json.dumps(told))
    keys = {"variants": {"changed": variant or {"overrides": "overrides.yaml"}}, **keys}
    return write_project(folder, steps, servers={"shop": {"python": "./shop.py:shop"}}, **keys)


async def played(project: Project) -> Played:
    with anyio.fail_after(30):
        run = (await run_async(project)).run
    (record,) = run.records()
    return Played(record, run.transcript(record))


def shown(trial: Played) -> dict[str, Any]:
    (prompt,) = (each for each in trial.transcript.events if isinstance(each, PromptGiven))
    return {tool.shown_name: tool for tool in prompt.tools}


async def test_the_model_is_told_otherwise_and_its_calls_reach_the_unchanged_server(tmp_path: Path) -> None:
    told = {
        "tools": {
            "search": {"name": "find_items", "description": "Find items.", "parameters": {"text": "Words."}},
            "shop/buy": {"hide": True},
        },
        "instructions": {"shop": "Sell nothing."},
    }
    turn = calls(call("find_items", text="a pen"), call("search", text="a pen"), call("buy", item="a pen"))
    host = {"host": "loop", "instructions": True}
    trial = await played(shop_project(tmp_path, [turn, DONE], told, hosts=[host]))
    tool = shown(trial)["find_items"]
    assert list(shown(trial)) == ["find_items"]
    assert tool.description == "Find items."
    assert tool.input_schema["properties"]["text"]["description"] == "Words."
    assert trial.shown[0] == "found a pen"
    assert trial.statuses[:2] == ["ok", "not_sent"]
    assert trial.record.tool_sequence[0] == "search"
    events = [each for each in trial.transcript.events if isinstance(each, PresentationChange)]
    assert [(each.policy, each.subject, each.path, each.before, each.after) for each in events] == [
        ("tool_name", "shop/search", None, "search", "find_items"),
        ("override", "shop/search", "$.description", "Search.", "Find items."),
        ("override", "shop/search", "$.inputSchema: text", None, "Words."),
        ("override", "shop/buy", None, "buy", None),
        ("override", "shop", None, "Sell.", "Sell nothing."),
    ]
    (prompt,) = (each for each in trial.transcript.events if isinstance(each, PromptGiven))
    assert str(prompt.system).endswith("\n\nSell nothing.")


async def test_calls_by_the_name_that_a_tool_had_are_counted_as_what_they_are(tmp_path: Path) -> None:
    told = {"tools": {"search": {"name": "find_items"}}}
    steps = [calls(call("search", text="a pen")), calls(call("nothing")), DONE]
    shop_project(tmp_path, steps, told, variants={"base": {}, "changed": {"overrides": "overrides.yaml"}})
    rules = [{"type": "exact_answer", "expected": "done"}, {"type": "required_tools", "tools": ["search"]}]
    task = {"id": "task", "prompt": "Do it.", "expected_tools": ["search"], "graders": rules}
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    with anyio.fail_after(30):
        run = (await run_async(Project.load(tmp_path))).run
    base, changed = sorted(run.records(), key=lambda record: record.variant)
    assert (base.tool_sequence, changed.tool_sequence) == (("search", "nothing"),) * 2
    assert base.called == ("search", "nothing (no such tool)")
    assert changed.called == ("search (no such tool)", "nothing (no such tool)")
    assert [(each.unknown_tools, each.unknown_at, each.sent_calls) for each in (base, changed)] == [
        (1, (1,), 2),
        (2, (0, 1), 1),
    ]
    assert [each.graders[1].passed for each in (base, changed)] == [True, False]

    rows = {(row["arm"], row["name"]): row for row in summarise(run)["tools"]}
    counts = {key: (row["unknown"], row["calls"], row["sent"], row["trials"]) for key, row in rows.items()}
    assert counts == {
        (base.arm, "search"): (False, 1, 1, 1),
        (base.arm, "nothing"): (True, 1, 1, 1),
        (changed.arm, "search"): (True, 1, 0, 1),
        (changed.arm, "nothing"): (True, 1, 1, 1),
    }
    [found] = compare(run)["comparisons"]
    assert found["first_calls"]["b"] == {"shares": {"search (no such tool)": 1.0}, "wrong": 1.0, "n_judged": 1}
    assert found["wrong_calls"]["a"]["names"] == {"nothing": 1}
    assert found["wrong_calls"]["b"] == {
        "of": 1,
        "unknown_tools": {"trials": 1, "share": 1.0},
        "argument_errors": {"trials": 0, "share": 0.0},
        "names": {"search": 1, "nothing": 1},
    }


async def test_a_renamed_tools_row_does_not_take_in_calls_by_its_old_name(tmp_path: Path) -> None:
    told = {"tools": {"search": {"name": "find_items"}}}
    turn = calls(call("find_items", text="a"), call("search", text="a"), call("search"), call("find_items", text=1))
    project = shop_project(tmp_path, [turn, DONE], told)
    with anyio.fail_after(30):
        run = (await run_async(project)).run
    rows = {(row["name"], row["unknown"]): row for row in summarise(run)["tools"]}
    assert {key: (row["calls"], row["argument_errors"]) for key, row in rows.items()} == {
        ("search", False): (2, 1),
        ("search", True): (2, 0),
    }


async def test_a_hidden_tool_is_out_of_reach(tmp_path: Path) -> None:
    turn = calls(call("buy", item="a pen"))
    trial = await played(shop_project(tmp_path, [turn, DONE], "tools: {buy: {hide: true}}"))
    assert trial.shown == ["Error: there is no tool 'buy'"]


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ("tools: {serch: {hide: true}}", "overrides.yaml: tools.serch: no server has a tool 'serch'"),
        ("tools: {shop/by: {hide: true}}", 'overrides.yaml: tools["shop/by"]: no server has a tool'),
        (
            "tools: {search: {parameters: {txt: x}}}",
            "tools.search: the tool has no parameter 'txt'; did you mean 'text'",
        ),
        ("tools: {search: {name: buy}}", "2 tools of server 'shop' would be called 'buy'"),
        ("instructions: {shp: x}", "instructions.shp: there is no server 'shp'; did you mean 'shop'?"),
        ("tools: {search: {hide: true}, buy: {hide: true}}", "no tool is shown to the model"),
    ],
)
async def test_what_is_not_there_is_refused_before_any_spend(tmp_path: Path, told: str, line: str) -> None:
    project = shop_project(tmp_path, [DONE], told)
    with pytest.raises(UsageError) as caught:
        await run_async(project)
    assert line in str(caught.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ("tool: {}", "overrides.yaml:1: tool: unknown key 'tool'; did you mean 'tools'?"),
        ("tools: {search: {descripton: x}}", "did you mean 'description'?"),
        ("tools: {search: {name: 'a b'}}", "overrides.yaml:1: tools.search.name: no provider's name of a tool"),
        ("tools: {search: {description: 3}}", "overrides.yaml:1: tools.search.description: should be text, not 3"),
        ("- a", "should be a mapping"),
        ("naming: infix", "naming: should be"),
        ("a: [", "overrides.yaml"),
    ],
)
def test_a_misspelt_file_is_refused_with_its_place(tmp_path: Path, told: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        shop_project(tmp_path, [DONE], told)
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("variant", "line"),
    [
        ({"overrides": "other.yaml"}, "other.yaml: the file does not exist"),
        ({"override": "overrides.yaml"}, "did you mean 'overrides'?"),
        ({"naming": "sufix"}, "there is no naming 'sufix'; did you mean 'suffix'?"),
        ({"overrides": ""}, "write overrides: overrides.yaml"),
    ],
)
def test_a_misspelt_variant_is_refused_with_its_place(tmp_path: Path, variant: Any, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        shop_project(tmp_path, [DONE], "{}", variant)
    assert line in str(caught.value)


def test_what_is_told_is_part_of_an_arms_identity_and_how_it_is_written_is_not(tmp_path: Path) -> None:
    def arm(told: str) -> str:
        (found,) = shop_project(tmp_path, [DONE], told).arms()
        return found

    plain = write_project(tmp_path, [DONE], variants={"changed": {}})
    assert list(plain.arms()) == [arm("{}")] == [arm("# nothing\ntools: {search: {}}")]
    wordy = "tools:\n  search:\n    # why\n    description: Find."
    assert arm("tools: {search: {description: Find.}}") == arm(wordy)
    different = {arm(f"tools: {{search: {{description: {text}}}}}") for text in ("Find.", "find.", "null")}
    assert len(different) == 3


async def test_one_key_tries_every_way_to_name_tools(tmp_path: Path) -> None:
    project = shop_project(tmp_path, [DONE], "{}", {}, naming=["bare", "prefix", "suffix"])
    assert len(project.arms()) == 3
    with anyio.fail_after(30):
        run = (await run_async(project)).run
    names = {record.variant: sorted(shown(Played(record, run.transcript(record)))) for record in run.records()}
    assert names == {
        "changed-bare": ["buy", "search"],
        "changed-prefix": ["shop__buy", "shop__search"],
        "changed-suffix": ["buy__shop", "search__shop"],
    }


def listing(*names: str, **schema: Any) -> list[dict[str, Any]]:
    return [{"name": name, "description": "d", "inputSchema": {"type": "object", **schema}} for name in names]


def test_parameters_inside_objects_and_lists_are_named_with_dots() -> None:
    inner = {"type": "object", "properties": {"a.b": {"type": "string"}, "open": True}}
    tools = listing("t", properties={"outer": {"type": "array", "items": inner}, "plain": {"description": "old"}})
    texts = {"outer.a.b": "new", "outer.open": "new", "plain": None}
    overrides = Overrides.model_validate({"tools": {"t": {"parameters": texts}}})
    check(overrides, {"s": tools}, "f")
    before = json.dumps(tools)
    (shown_tool,), _ = present_tools({"s": tools}, {}, overrides=overrides)
    properties = shown_tool.input_schema["properties"]
    assert properties["outer"]["items"]["properties"] == {
        "a.b": {"type": "string", "description": "new"},
        "open": {"description": "new"},
    }
    assert properties["plain"] == {}
    assert json.dumps(tools) == before


def test_a_tool_of_several_servers_needs_its_servers_name() -> None:
    listings = {"a": listing("t"), "b": listing("t")}
    with pytest.raises(UsageError, match="several servers have a tool 't'; write a/t or b/t"):
        check(Overrides.model_validate({"tools": {"t": {"hide": True}}}), listings, "f")
    overrides = Overrides.model_validate({"tools": {"a/t": {"name": "u"}}})
    check(overrides, listings, "f")
    tools, _ = present_tools(listings, {}, overrides=overrides)
    assert [(tool.shown_name, tool.server, tool.tool) for tool in tools] == [("u", "a", "t"), ("t", "b", "t")]


def test_filters_go_by_what_the_server_itself_declares() -> None:
    told = {"tools": {"t": {"annotations": {"readOnlyHint": True}}}}
    tools, _ = present_tools(
        {"s": listing("t")}, {"s": ToolFilter(writes="denied")}, overrides=Overrides.model_validate(told)
    )
    assert tools == ()
