"""What a model is shown is adapted to its provider and recorded; what a server is sent, and judged by, is its own."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.projects import DONE, Played, call, calls, play, write_project

from mcptrials.errors import UsageError
from mcptrials.events import PresentationChange, PromptGiven
from mcptrials.presentation import NAME
from mcptrials.report import summarise
from mcptrials.store import Run

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "listing_server.py"
NULLABLE = {
    "type": "object",
    "properties": {"q": {"type": ["string", "null"]}, "n": {"type": "integer", "exclusiveMinimum": 0}},
}


def tool(name: str = "find", schema: Any = NULLABLE) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, "annotations": {"readOnlyHint": True}}


def listing(folder: Path, *tools: Any, **keys: Any) -> dict[str, Any]:
    """The `servers` of a project whose only server lists these tools."""
    (folder / "tools.json").write_text(json.dumps(tools))
    return {"server": {"command": "{python}", "args": [str(SERVER), str(folder / "tools.json")], **keys}}


def model(schema: str | None) -> list[dict[str, Any]]:
    return [{"model": "scripted:script.json", **({"schema": schema} if schema else {})}]


def shown(played: Played) -> dict[str, Any]:
    [prompt] = (event for event in played.transcript.events if isinstance(event, PromptGiven))
    return {each.shown_name: each.input_schema for each in prompt.tools}


def changes(played: Played) -> list[PresentationChange]:
    return [event for event in played.transcript.events if isinstance(event, PresentationChange)]


async def test_an_adapted_schema_is_shown_and_each_change_of_it_is_an_event(tmp_path: Path) -> None:
    played = await play(tmp_path, DONE, servers=listing(tmp_path, tool()), models=model("gemini"))
    properties = {"q": {"type": "string", "nullable": True}, "n": {"type": "integer", "minimum": 1}}
    assert shown(played) == {"find": {"type": "object", "properties": properties}}
    assert [(each.policy, each.subject, each.rule, each.path, each.before, each.after) for each in changes(played)] == [
        ("schema", "server/find", "one_type", "$.properties.q", {"type": ["string", "null"]}, properties["q"]),
        ("schema", "server/find", "inclusive_bounds", "$.properties.n", {"exclusiveMinimum": 0}, {"minimum": 1}),
    ]


@pytest.mark.parametrize("schema", [None, "exact"])
async def test_a_model_of_no_known_provider_is_shown_what_the_server_sent(schema: str | None, tmp_path: Path) -> None:
    played = await play(tmp_path, DONE, servers=listing(tmp_path, tool()), models=model(schema))
    assert json.dumps(shown(played)) == json.dumps({"find": NULLABLE})
    assert changes(played) == []


async def test_arguments_are_judged_by_the_servers_own_schema_and_sent_to_it_unchanged(tmp_path: Path) -> None:
    turn = calls(call("find", q=None), call("find", n=0))
    played = await play(tmp_path, turn, DONE, servers=listing(tmp_path, tool()), models=model("gemini"))
    fits, breaks = played.transcript.calls
    assert (fits.call.argument_error, fits.call.arguments) == (None, {"q": None})
    assert breaks.call.argument_error == "$.n: 0 is less than or equal to the minimum of 0"
    assert played.shown == ['{"q": null}', '{"n": 0}']


async def test_a_name_that_only_one_provider_refuses_is_rewritten_for_it_and_leads_back(tmp_path: Path) -> None:
    servers = listing(tmp_path, tool("2find"), tool("-x"), tool("_2find"))
    played = await play(tmp_path, DONE, servers=servers, models=model("gemini"))
    first, second, third = shown(played)
    assert first.startswith("_2find_")
    assert second.startswith("_-x_")
    assert third == "_2find"
    (tmp_path / "other").mkdir()
    played = await play(
        tmp_path / "other", calls(call("2find", q="x")), DONE, servers=servers, models=model("anthropic")
    )
    assert list(shown(played)) == ["2find", "-x", "_2find"]
    assert played.shown == ['{"q": "x"}']


async def test_the_schemas_of_two_settings_are_two_arms(tmp_path: Path) -> None:
    models = [*model(None), *model("gemini"), *model("exact")]
    with pytest.raises(ValueError, match="too many values to unpack"):
        await play(tmp_path, DONE, servers=listing(tmp_path, tool()), models=models)
    arms = {path.name.split("-")[2] for path in (tmp_path / "runs").glob("*/transcripts/*")}
    assert len(arms) == 3


MISSING = {"type": "object", "properties": {"q": {"$ref": "#/$defs/Q"}}}


async def test_a_tool_that_the_provider_would_refuse_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    servers = listing(tmp_path, tool(), tool("bad", MISSING))
    with pytest.raises(UsageError) as caught:
        await play(tmp_path, DONE, servers=servers, models=model("openai"))
    assert caught.value.what == (
        "openai refuses tool 'server/bad': $.properties.q has a $ref '#/$defs/Q' that leads nowhere in the schema"
    )
    assert caught.value.where == "model 'scripted:script.json'"
    assert not list((tmp_path / "runs").glob("*"))


async def test_such_a_tool_can_be_hidden_or_tried_as_it_is(tmp_path: Path) -> None:
    tools = [tool(), tool("bad", MISSING)]
    for name, keys in (("hidden", {"tools": {"hide": ["bad"]}}), ("exact", {})):
        (tmp_path / name).mkdir()
        servers = listing(tmp_path / name, *tools, **keys)
        chosen = model("openai" if name == "hidden" else "exact")
        assert (await play(tmp_path / name, DONE, servers=servers, models=chosen)).record.verdict == "passed"


@pytest.mark.parametrize(("schema", "limit"), [("openai", 128), ("gemini", 512)])
async def test_more_tools_than_the_provider_takes_stop_the_run(schema: str, limit: int, tmp_path: Path) -> None:  # C23
    tools = [tool(f"t{number}") for number in range(limit + 1)]
    with pytest.raises(
        UsageError, match=f"{schema} takes {limit} tools at most, and {limit + 1} are shown; choose some"
    ):
        await play(tmp_path, DONE, servers=listing(tmp_path, *tools), models=model(schema))
    servers = listing(tmp_path, *tools, tools={"hide": ["t0"]})
    assert (await play(tmp_path, DONE, servers=servers, models=model(schema))).record.verdict == "passed"


def test_an_unknown_dialect_and_a_bad_endpoint_are_errors_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="schema"):
        write_project(tmp_path, [DONE], models=model("claude"))
    for address in ("ftp://x", "127.0.0.1:8901", "http://[bad", "http://"):
        with pytest.raises(UsageError, match="base_url"):
            write_project(tmp_path, [DONE], models=[{"model": "openai:x", "base_url": address}])


async def test_what_a_server_refuses_though_its_schema_allows_it_is_counted_by_tool(tmp_path: Path) -> None:  # C25
    servers = listing(tmp_path, tool(), tool("strict"))
    servers["server"]["args"] += ["1", "picky"]
    turn = calls(call("find", q="x"), call("find", n=1), call("strict", n=0))
    played = await play(tmp_path, turn, DONE, servers=servers, models=model("gemini"))
    assert played.statuses == ["tool_error"] * 3
    [run] = (tmp_path / "runs").iterdir()
    rows = {row["name"]: row for row in summarise(Run.load(run))["tools"]}
    assert (rows["find"]["calls"], rows["find"]["rejected_though_valid"]) == (2, 2)
    assert (rows["strict"]["argument_errors"], rows["strict"]["rejected_though_valid"]) == (1, 0)


async def test_long_names_of_two_servers_are_cut_and_stay_apart(tmp_path: Path) -> None:  # C22
    servers: dict[str, Any] = {}
    for name in ("production_database_one", "production_database_two"):
        servers |= {name: listing(tmp_path, tool("x" * 60), tool("x" * 59 + "y"))["server"]}
    for schema in ("openai", "gemini"):
        folder = tmp_path / schema
        folder.mkdir()
        played = await play(folder, DONE, servers=servers, models=model(schema))
        assert len(shown(played)) == 4
        assert all(NAME.fullmatch(name) for name in shown(played))
        told = Counter(each.policy for each in changes(played))
        assert told == Counter(tool_name=4, schema=8 if schema == "gemini" else 0)
