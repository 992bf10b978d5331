"""Arguments that the project fixes: added to calls, hidden from the model, recorded as asked and as sent."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.projects import DONE, Played, call, calls, faulty, play

from mcptrials.errors import UsageError
from mcptrials.events import PresentationChange, PromptGiven
from mcptrials.presentation import ToolFilter, amiss, present_tools

pytestmark = pytest.mark.anyio


def tenants(inject: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Servers of the project file, whose `echo` also takes a tenant."""
    return {"faulty": faulty("tenants", tools={"inject": inject}, **keys)}


def schema_of(played: Played, tool: str) -> Any:
    (prompt,) = (event for event in played.transcript.events if isinstance(event, PromptGiven))
    return next(each.input_schema for each in prompt.tools if each.shown_name == tool)


@pytest.mark.parametrize("tool", ["echo", "*"])
async def test_a_fixed_argument_is_sent_and_the_model_neither_sees_nor_sends_it(tool: str, tmp_path: Path) -> None:
    inject = {tool: {"tenant": "acme {trial_dir}"}}
    played = await play(tmp_path, calls(call("echo", text="hi")), DONE, servers=tenants(inject))
    schema = schema_of(played, "echo")
    assert list(schema["properties"]) == ["text", "value"]
    assert schema["required"] == ["text"]
    (made,) = played.transcript.calls
    assert made.call.arguments == {"text": "hi"}
    assert made.call.sent["text"] == "hi"
    assert made.call.sent["tenant"].startswith("acme /")
    assert json.loads(played.shown[0]) == made.call.sent
    assert made.call.argument_error is None
    changes = [each for each in played.transcript.events if isinstance(each, PresentationChange)]
    assert [(each.policy, each.subject, each.before) for each in changes] == [("inject", "faulty/echo", "tenant")]


async def test_what_the_model_sends_under_that_name_all_the_same_does_not_count(tmp_path: Path) -> None:
    servers = tenants({"echo": {"tenant": "acme"}})
    played = await play(tmp_path, calls(call("echo", text="hi", tenant="rival")), DONE, servers=servers)
    (made,) = played.transcript.calls
    assert (made.call.arguments["tenant"], made.call.sent["tenant"]) == ("rival", "acme")
    assert json.loads(played.shown[0])["tenant"] == "acme"


@pytest.mark.parametrize("name", ["echo", "faulty__echo"])
async def test_no_name_of_a_tool_leads_around_what_is_injected(name: str, tmp_path: Path) -> None:
    servers = {"faulty": faulty("tenants", tools={"inject": {"*": {"tenant": "acme"}}, "prefix": "always"})}
    played = await play(tmp_path, calls(call(name, text="hi", tenant="rival")), DONE, servers=servers)
    (made,) = played.transcript.calls
    assert made.call.unknown_tool == (name == "echo")
    assert json.loads(played.shown[0])["tenant"] == "acme"


async def test_a_call_without_injection_is_recorded_once(tmp_path: Path) -> None:
    servers = tenants({"echo": {"tenant": "acme"}})
    played = await play(tmp_path, calls(call("add", a=1, b=2), call("gone", a=1)), DONE, servers=servers)
    assert [made.call.sent for made in played.transcript.calls] == [None, None]


async def test_arguments_that_cannot_be_read_stay_unsent_with_injection(tmp_path: Path) -> None:
    step = calls({"tool": "echo", "raw_arguments": "[1]"}, {"tool": "echo", "raw_arguments": "{"})
    played = await play(tmp_path, step, DONE, servers=tenants({"echo": {"tenant": "acme"}}))
    assert played.statuses == ["not_sent", "not_sent"]


async def test_a_secret_that_is_injected_stands_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANT_KEY", "sk-Ab3dEf6hIj9kLm")
    servers = tenants({"echo": {"tenant": "${TENANT_KEY}"}})
    servers["faulty"]["args"] += ["--fault", "no_content"]
    played = await play(tmp_path, calls(call("echo", text="hi")), DONE, servers=servers)
    assert played.record.verdict == "passed"
    written = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert written
    assert not any(b"Ab3dEf6hIj9kLm" in content for content in written)


@pytest.mark.parametrize(
    ("inject", "what"),
    [
        ({"ecko": {"tenant": "x"}}, "it has no tool 'ecko' to inject arguments into"),
        ({"echo": {"tennant": "x"}}, "it has a tool 'echo' that takes no 'tennant', which is to be injected"),
        ({"*": {"state_key": "x"}}, "it has no tool that takes 'state_key', which is to be injected"),
        ({"recall": {"tenant": "x"}}, "it has a tool 'recall' that takes no 'tenant'"),
    ],
)
async def test_an_injection_that_goes_nowhere_is_found_before_any_trial(
    inject: dict[str, Any], what: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        await play(tmp_path, DONE, servers=tenants(inject))
    assert what in str(caught.value)
    assert caught.value.hint == "mend servers.faulty.tools.inject"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "object", "properties": {"k": {}, "a": {}}}, {"type": "object", "properties": {"a": {}}}),
        (
            {"properties": {"k": {}}, "required": ["k"], "additionalProperties": False},
            {"properties": {}, "required": [], "additionalProperties": False},
        ),
        (
            {"properties": {"k": {}}, "anyOf": [{"required": ["k"]}, {"required": ["a", "k"]}]},
            {"properties": {}, "anyOf": [{"required": []}, {"required": ["a"]}]},
        ),
        (
            {"properties": {"k": {}, "o": {"properties": {"k": {}}, "required": ["k"]}}},
            {"properties": {"o": {"properties": {"k": {}}, "required": ["k"]}}},
        ),
        ({"properties": {"k": True}, "allOf": "odd", "required": 7}, {"properties": {}, "allOf": "odd", "required": 7}),
    ],
)
def test_the_schema_is_that_of_a_tool_without_the_parameter(schema: Any, shown: Any) -> None:
    rule = ToolFilter(inject={"*": {"k": 1}})
    before = json.dumps(schema)
    (tool,), _ = present_tools({"s": [{"name": "t", "inputSchema": schema}]}, {"s": rule})
    assert tool.input_schema == shown
    assert json.dumps(schema) == before


def test_a_tool_named_by_itself_wins_over_the_star() -> None:
    rule = ToolFilter(inject={"*": {"k": 1, "other": 2}, "t": {"k": 3}})
    tool = {"name": "t", "inputSchema": {"properties": {"k": {}}}}
    assert rule.injected(tool) == {"k": 3}
    assert list(amiss(rule.inject, [tool])) == ["has no tool that takes 'other', which is to be injected"]
