"""Tool lists that change during a trial: frozen unless the project lets the model see the change."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import Server, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from tests.projects import DONE, Played, call, calls, faulty, misbehave, play
from tests.servers.serving import serving
from tests.servers.talking import talking

from mcptrials.events import ServerLog, ToolsListed
from mcptrials.servers.asking import Client
from mcptrials.servers.http import HttpServer
from mcptrials.servers.in_process import in_process_server

pytestmark = pytest.mark.anyio

EXTRA = calls(call("extra"))


def listed(played: Played) -> list[list[str]]:
    events = [event for event in played.transcript.events if isinstance(event, ToolsListed)]
    return [[tool.tool for tool in event.tools][8:] for event in events]


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("policy", ["frozen", "refresh"])
async def test_the_model_sees_a_changed_list_only_where_the_project_wants_it(
    policy: str, era: str, tmp_path: Path
) -> None:
    server = faulty(list_changed=policy, era=era)
    played = await play(tmp_path, misbehave("list_changed"), EXTRA, EXTRA, DONE, servers={"faulty": server})
    assert played.verdict == ("passed", "none", None)
    assert listed(played) == ([["extra"]] if policy == "refresh" else [])
    assert [made.call.unknown_tool for made in played.transcript.calls] == [False] + [policy == "frozen"] * 2
    told = [event.method for event in played.transcript.events if isinstance(event, ServerLog)]
    assert told == ["notifications/tools/list_changed"]


async def test_a_changed_list_is_filtered_like_the_first(tmp_path: Path) -> None:
    server = faulty(list_changed="refresh", tools={"allow": ["misbehave", "echo"]})
    played = await play(tmp_path, misbehave("list_changed"), EXTRA, DONE, servers={"faulty": server})
    (event,) = (event for event in played.transcript.events if isinstance(event, ToolsListed))
    assert [tool.tool for tool in event.tools] == ["echo", "misbehave"]
    assert played.statuses == ["ok", "not_sent"]


LATER_BROKEN = """
import json, sys
lists = 0
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list":
        lists += 1
        schema = {"type": "object"}
        tools = [{"name": "go", "inputSchema": schema}]
        if lists > 1:
            tools = LATER
        r = {"tools": tools}
    elif m["method"] == "tools/call":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
        r = {"content": []}
    elif "id" not in m:
        continue
    else:
        r = None
    outcome = {"result": r} if r is not None else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **outcome}), flush=True)
"""


@pytest.mark.parametrize(
    ("later", "faults"),
    [
        ('[{"name": "go"}, {"name": "new", "inputSchema": schema}]', ["broken_tool_list"]),
        ('"none"', ["broken_tool_list"]),
        ("sys.exit()", ["changed_list_missing", "server_ended"]),
    ],
)
async def test_a_changed_list_that_is_broken_is_recorded_and_costs_no_trial_by_itself(
    later: str, faults: list[str], tmp_path: Path
) -> None:
    server = {"command": "{python}", "args": ["-c", LATER_BROKEN.replace("LATER", later)], "era": "legacy"}
    played = await play(tmp_path, calls(call("go")), DONE, servers={"s": {**server, "list_changed": "refresh"}})
    assert played.verdict == ("passed", "none", None)
    assert [fault for fault in played.record.server_faults if fault in faults][:1] == faults[:1]


async def test_a_list_that_never_comes_is_the_servers_time_and_not_ours(tmp_path: Path) -> None:
    program = LATER_BROKEN.replace("LATER", "time.sleep(2.5)").replace("import json, sys", "import json, sys, time")
    server = {"command": "{python}", "args": ["-c", program], "era": "legacy", "list_changed": "refresh"}
    limits = {"call_seconds": 60, "trial_seconds": 2}
    played = await play(tmp_path, calls(call("go")), DONE, servers={"s": server}, limits=limits)
    assert played.verdict == ("failed", "server", "limit:time")
    (event,) = (event for event in played.transcript.events if isinstance(event, ToolsListed))
    assert (event.error, len(event.tools)) == ("its changed tool list had not come when the trial ended", 1)


def changing() -> Any:
    """A server of the SDK whose first call adds a tool, and that tells whoever listens."""
    bus = InMemorySubscriptionBus()
    names = ["go"]

    async def tools(context: ServerRequestContext[Any], params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in names])

    async def called(context: ServerRequestContext[Any], params: Any) -> CallToolResult:
        names.append("new")
        await bus.publish(ToolsListChanged())
        return CallToolResult(content=[TextContent(type="text", text="done")])

    return Server("sdk", on_list_tools=tools, on_call_tool=called, on_subscriptions_listen=ListenHandler(bus))


@pytest.mark.parametrize("transport", ["object", "url"])
async def test_a_modern_server_of_the_sdk_is_listened_to(transport: str, tmp_path: Path) -> None:
    with anyio.fail_after(20), serving(changing().streamable_http_app()) as served:
        by_url = HttpServer("sdk", served.url)
        server = by_url if transport == "url" else in_process_server("sdk", "tests:changing", changing)
        async with talking(server, tmp_path, era="modern", client=Client(listens=True)) as talk:
            assert [tool["name"] for tool in talk.session.tools] == ["go"]
            with anyio.fail_after(5):
                while not talk.session.list_changed:  # whoever listens has to be there first
                    assert (await talk.session.call("go", {}, 5)).status == "ok"
            assert await talk.session.refresh(5) is None
            assert "new" in [tool["name"] for tool in talk.session.tools]
