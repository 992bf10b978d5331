"""The way of a model's calls to the servers and back: what is sent, what is labelled, what the model sees."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.projects import DONE, call, calls, faulty, misbehave, play

from mcptrials.events import ContractViolation, PresentationChange, PromptGiven
from mcptrials.presentation import NAME, provider_name
from mcptrials.transcript import Transcript

pytestmark = pytest.mark.anyio

WATCHER = """
import json
from mcptrials.models.scripted import Scripted

class Watcher(Scripted):
    "Plays the script, and writes down the tools and the conversation of each request."

    def __init__(self, *, project_dir):
        super().__init__("script.json", project_dir=project_dir)
        self.log = project_dir / "requests.jsonl"

    async def request(self, messages, tools, settings, trial):
        seen = [[type(each).__name__, getattr(each, "call_id", None), getattr(each, "text", None)] for each in messages]
        with self.log.open("a") as file:
            file.write(json.dumps(seen) + "\\n")
        return await super().request(messages, tools, settings, trial)
"""


def changes(transcript: Transcript) -> list[tuple[str, Any]]:
    return [(each.policy, each.subject) for each in transcript.events if isinstance(each, PresentationChange)]


def breaches(transcript: Transcript) -> list[str]:
    return [each.what for each in transcript.events if isinstance(each, ContractViolation)]


async def test_several_calls_of_one_turn_are_answered_in_order_and_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "watcher.py").write_text(WATCHER, "utf-8")
    turn = calls(call("add", a=1, b=2), call("recall"), call("add", a=3, b=4))
    played = await play(tmp_path, turn, DONE, models=["./watcher.py:Watcher"])
    first, second = map(json.loads, (tmp_path / "requests.jsonl").read_text().splitlines())
    assert [kind for kind, *_ in first] == ["System", "User"]
    missing = "Error: cannot call recall: FileNotFoundError(2, 'No such file or directory')"
    assert second[2:] == [
        ["Assistant", None, None],
        ["ToolOutput", "call_0_0", "3"],
        ["ToolOutput", "call_0_1", missing],
        ["ToolOutput", "call_0_2", "7"],
    ]
    assert (played.record.verdict, played.record.tool_calls, played.record.sent_calls) == ("passed", 3, 3)
    assert played.record.tool_sequence == ("add", "recall", "add")


async def test_a_tools_own_error_is_shown_as_one_and_counted_as_one(tmp_path: Path) -> None:
    steps = [calls(call("fail", message="no such issue")), calls(call("fail", message="Error: gone")), DONE]
    played = await play(tmp_path, *steps)
    assert played.shown == ["Error: no such issue", "Error: gone"]
    assert played.statuses == ["tool_error", "tool_error"]
    assert (played.record.tool_errors, played.record.protocol_errors) == (2, 0)
    assert changes(played.transcript) == [("mark_error", "result")]


async def test_errors_of_the_protocol_are_shown_with_their_code_and_counted_apart(tmp_path: Path) -> None:
    played = await play(tmp_path, misbehave("rpc_error"), misbehave("closed_error"), DONE)
    assert played.shown == ["MCP error -32602: Unknown tool", "MCP error -32000: Connection closed"]
    assert (played.record.tool_errors, played.record.protocol_errors) == (0, 2)
    assert played.record.verdict == "passed"


async def test_a_tool_that_is_on_no_list_is_asked_for_and_labelled(tmp_path: Path) -> None:
    played = await play(tmp_path, calls(call("delete_all", sure=True)), DONE)
    (made,) = played.transcript.calls
    assert (made.call.unknown_tool, made.call.server, made.call.tool, made.sent) == (True, "faulty", "delete_all", True)
    assert played.shown == ["Error: cannot call delete_all: KeyError('delete_all')"]
    assert (played.record.unknown_tools, played.record.tool_errors) == (1, 1)


@pytest.mark.parametrize(
    "keys",
    [
        {"servers": {"faulty": faulty(tools={"hide": ["remember"]})}},
        {"servers": {"faulty": faulty(tools={"allow": ["echo", "recall"]})}},
        {"servers": {"faulty": faulty(writes="denied")}},
        {"environment": None},
    ],
)
async def test_a_tool_that_is_not_shown_cannot_be_called_by_its_name(keys: dict[str, Any], tmp_path: Path) -> None:
    played = await play(tmp_path, calls(call("remember", text="x")), calls(call("recall")), DONE, **keys)
    (prompt,) = (event for event in played.transcript.events if isinstance(event, PromptGiven))
    assert "remember" not in [tool.shown_name for tool in prompt.tools]
    assert played.statuses == ["not_sent", "tool_error"]
    assert played.shown[0] == "Error: there is no tool 'remember'"
    assert "FileNotFoundError" in played.shown[1]
    assert (played.record.tool_calls, played.record.sent_calls, played.record.unknown_tools) == (2, 1, 1)


async def test_arguments_that_cannot_be_read_are_not_sent_and_the_model_is_told(tmp_path: Path) -> None:
    told = {
        '{"text": "hi"': "Error: the arguments are not valid JSON",
        '{"text": NaN}': "Error: the arguments are not valid JSON",
        '{"text": 1e999}': "Error: the arguments are not valid JSON",
        "[" * 100_000: "Error: the arguments are nested too deeply",
        f'{{"text": {"[" * 200}{"]" * 200}}}': "Error: the arguments are nested more than 200 levels deep",
        '["hi"]': "Error: the arguments are not a JSON object",
    }
    played = await play(tmp_path, calls(*({"tool": "echo", "raw_arguments": raw} for raw in told)), DONE)
    assert [made.call.raw_arguments for made in played.transcript.calls] == list(told)
    assert played.shown == list(told.values())
    assert played.statuses == ["not_sent"] * len(told)
    assert played.verdict == ("passed", "none", None)
    assert (played.record.argument_errors, played.record.tool_calls, played.record.sent_calls) == (
        len(told),
        len(told),
        0,
    )


async def test_no_text_at_all_is_a_call_without_arguments(tmp_path: Path) -> None:
    played = await play(tmp_path, calls({"tool": "environment", "raw_arguments": " "}), DONE)
    assert played.statuses == ["ok"]


async def test_arguments_that_do_not_fit_the_schema_are_labelled_and_sent(tmp_path: Path) -> None:
    played = await play(tmp_path, calls(call("add", a="1", b=2), call("add", a=1, b=2)), DONE)
    wrong, right = played.transcript.calls
    assert wrong.call.argument_error == "$.a: '1' is not of type 'integer'"
    assert wrong.sent
    assert right.call.argument_error is None
    assert "TypeError" in played.shown[0]
    assert played.record.argument_errors == 1


async def test_names_that_providers_refuse_are_rewritten_and_lead_back(tmp_path: Path) -> None:  # C21
    shown = provider_name("has space")
    played = await play(tmp_path, calls(call(shown)), DONE, servers={"faulty": faulty("odd_names")})
    (prompt,) = (event for event in played.transcript.events if isinstance(event, PromptGiven))
    names = {tool.tool: tool.shown_name for tool in prompt.tools}
    odd = ["calendar.list", "has space", "é漢", "x" * 100, "a/b", "a.b"]
    assert [policy for policy, _ in changes(played.transcript)[:6]] == ["tool_name"] * 6
    assert [subject for _, subject in changes(played.transcript)[:6]] == [f"faulty/{name}" for name in odd]
    assert all(NAME.fullmatch(names[name]) for name in odd)
    assert len(set(names.values())) == len(names) == 14
    (made,) = played.transcript.calls
    assert (made.call.shown_name, made.call.tool, made.call.unknown_tool) == (shown, "has space", False)
    assert played.shown == ["Error: cannot call has space: KeyError('has space')"]


async def test_tools_of_equal_name_go_to_the_server_that_stands_before_them(tmp_path: Path) -> None:
    servers = {name: faulty() for name in ("left", "right")}
    servers["right"]["args"][3] = "{trial_dir}/other.txt"
    turn = calls(call("left__remember", text="L"), call("right__remember", text="R"), call("right__recall"))
    played = await play(tmp_path, turn, calls(call("recall")), DONE, servers=servers)
    assert played.shown == ["1 characters", "1 characters", "R", "Error: there is no tool 'recall'"]
    assert played.record.tool_sequence == ("left/remember", "right/remember", "right/recall", "recall")
    assert played.record.server_name == {"left": "faulty", "right": "faulty"}


async def test_the_model_sees_text_as_it_is_and_placeholders_for_the_rest(tmp_path: Path) -> None:
    expected = {
        "control": "a\0b\u2028c",
        "image": "before\n[image: image/png, 6 bytes]",
        "resource": "before\ninside",
        "blob": "before\n[resource: file:///b, 6 bytes]",
        "resource_link": "before\n[resource_link: text/plain, file:///c, c]",
        "unknown_block": "before\n[video: video/mp4, 6 bytes]",
        "structured_only": '{"n":42,"a":[1,2.5,null]}',
        "surrogate": "a\ufffdb",
        "bad_utf8": "a\ufffd\ufffdb",
        "no_content": "{}",
        "content_text": '{"content":"only text"}',
        "result_text": '"only text"',
    }
    played = await play(tmp_path, calls(*(call("misbehave", fault=each, value="") for each in expected)), DONE)
    assert dict(zip(expected, played.shown, strict=True)) == expected
    assert [policy for policy, _ in changes(played.transcript)] == [
        *["joined_blocks", "placeholder"],
        *["joined_blocks", "text_only"],
        *["joined_blocks", "placeholder"] * 3,
        "structured_content",
        "lone_surrogates",
        *["malformed_result"] * 3,
    ]
    assert played.record.verdict == "passed"


async def test_results_are_kept_as_they_came_over_the_wire(tmp_path: Path) -> None:
    played = await play(tmp_path, misbehave("surrogate"), misbehave("structured_only"), DONE)
    first, second = (made.answer.result for made in played.transcript.calls if made.answer)
    assert first == {"content": [{"type": "text", "text": "a\ud800b"}], "structuredContent": {"\udfff": "\ud800"}}
    assert json.dumps(second) == '{"content": [], "structuredContent": {"n": 42, "a": [1, 2.5, null]}}'


async def test_breaches_of_the_protocol_are_events_and_counted(tmp_path: Path) -> None:
    played = await play(tmp_path, misbehave("noise"), misbehave("no_version"), misbehave("input_required"), DONE)
    expected = ["stdout_not_json", "malformed_message", "stdout_not_json", "malformed_message", "endless_input"]
    assert breaches(played.transcript) == expected
    assert played.record.contract_violations == 5
    assert played.record.server_faults == ("stdout_not_json", "malformed_message", "endless_input")
    assert played.record.verdict == "passed"


async def test_a_broken_tool_list_is_recorded_in_every_trial_that_goes_on_without_those_tools(tmp_path: Path) -> None:
    servers = {"faulty": faulty("bad_tools", on_invalid_tool="drop")}
    played = await play(tmp_path, DONE, servers=servers)
    assert breaches(played.transcript) == ["broken_tool_list"] * 8
    assert played.record.server_faults == ("broken_tool_list",)


async def test_an_output_schema_that_is_not_kept_is_a_breach_and_the_result_is_shown(tmp_path: Path) -> None:  # C33
    turn = calls(*(call("misbehave", fault=each, value="") for each in ("structured_only", "image", "tool_error")))
    played = await play(tmp_path, turn, DONE, servers={"faulty": faulty("promises")})
    details = [each.detail for each in played.transcript.violations]
    assert details == ["misbehave: $: 'm' is a required property", "misbehave: there is no structuredContent"]
    assert played.statuses == ["ok", "ok", "tool_error"]
    assert played.shown[0] == '{"n":42,"a":[1,2.5,null]}'
