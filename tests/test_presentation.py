"""The model sees what the server sent; every difference is a named change."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.presentation import (
    NAME,
    ToolFilter,
    present_protocol_error,
    present_result,
    present_tools,
    provider_name,
    read_only,
)


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} | more


READS = {"annotations": {"readOnlyHint": True}}


def test_tools_keep_their_names_order_texts_and_schemas() -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {"type": "string"}}}
    shown, changes = present_tools({"s": [tool("b", inputSchema=schema), tool("a", description=None)]}, {})
    assert changes == ()
    assert [(each.shown_name, each.server, each.tool) for each in shown] == [("b", "s", "b"), ("a", "s", "a")]
    assert (shown[0].description, shown[1].description) == ("Does b.", None)
    assert json.dumps(shown[0].input_schema) == json.dumps(schema)


def test_a_name_that_two_servers_have_is_prefixed_by_the_server() -> None:
    shown, changes = present_tools({"one": [tool("get"), tool("put")], "two": [tool("get")]}, {})
    assert [each.shown_name for each in shown] == ["one__get", "put", "two__get"]
    assert [(change.policy, change.subject, change.before, change.after) for change in changes] == [
        ("tool_name", "one/get", "get", "one__get"),
        ("tool_name", "two/get", "get", "two__get"),
    ]


@pytest.mark.parametrize("name", ["a.b", "a/b", "söme", "x" * 65, "a b", ""])
def test_a_name_that_providers_refuse_is_rewritten_with_a_hash(name: str) -> None:
    assert NAME.fullmatch(provider_name(name))
    assert provider_name(name) == provider_name(name) != provider_name(f"{name}.")
    assert provider_name("fine_Name-1") == "fine_Name-1"


NAMES = st.text("ab_.é", min_size=1, max_size=6) | st.sampled_from(["get", "a__get", "b__get"])


@settings(deadline=None, max_examples=50)
@given(listings=st.dictionaries(st.sampled_from(["a", "b", "c.d"]), st.lists(NAMES, max_size=5, unique=True)))
def test_shown_names_are_valid_unique_and_lead_back_to_their_tools(listings: dict[str, list[str]]) -> None:
    shown, _ = present_tools({server: [tool(name) for name in names] for server, names in listings.items()}, {})
    assert len({each.shown_name for each in shown}) == len(shown)
    assert all(NAME.fullmatch(each.shown_name) for each in shown)
    assert [(each.server, each.tool) for each in shown] == [
        (s, name) for s, names in listings.items() for name in names
    ]


@pytest.mark.parametrize(
    ("filter_", "seen"),
    [
        (ToolFilter(), ["read", "write"]),
        (ToolFilter(hide=("read",)), ["write"]),
        (ToolFilter(allow=("read",)), ["read"]),
        (ToolFilter(allow=("read", "write"), hide=("read",)), ["write"]),
        (ToolFilter(allow=()), []),
        (ToolFilter(writes="denied"), ["read"]),
        (ToolFilter(writes="denied", allow=("write",)), ["write"]),
        (ToolFilter(writes="denied", hide=("read",)), []),
    ],
)
def test_a_filter_hides_tools_and_says_so(filter_: ToolFilter, seen: list[str]) -> None:
    shown, changes = present_tools({"s": [tool("read", **READS), tool("write")]}, {"s": filter_})
    assert [each.tool for each in shown] == seen
    hidden = [change.subject for change in changes if change.policy == "tool_filter"]
    assert hidden == [f"s/{name}" for name in ("read", "write") if name not in seen]


@pytest.mark.parametrize(
    "annotations", [None, {}, [], {"readOnlyHint": False}, {"readOnlyHint": "true"}, {"readOnlyHint": 1}]
)
def test_a_tool_reads_only_when_it_says_so_plainly(annotations: Any) -> None:
    assert read_only(tool("x", **READS))
    assert not read_only(tool("x", annotations=annotations))


def test_texts_stand_as_they_are_one_per_line() -> None:
    blocks = [{"type": "text", "text": " a\r\n"}, {"type": "text", "text": ""}, {"type": "text", "text": "<b>\u200b"}]
    shown, (change,) = present_result({"content": blocks, "structuredContent": {"x": 1}})
    assert shown == " a\r\n\n\n<b>\u200b"
    assert (change.policy, change.before, change.after) == ("joined_blocks", 3, 1)


def test_one_text_is_no_change() -> None:
    assert present_result({"content": [{"type": "text", "text": "a"}]}) == ("a", ())


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "image", "data": "QUJD", "mimeType": "image/png"}, "[image: image/png, 3 bytes]"),
        ({"type": "audio", "data": "QUJDRA==", "mimeType": "audio/wav"}, "[audio: audio/wav, 6 bytes]"),
        ({"type": "resource_link", "uri": "file:///a", "name": "a"}, "[resource_link: file:///a, a]"),
        ({"type": "resource", "resource": {"uri": "x:1", "blob": "QUJD"}}, "[resource: x:1, 3 bytes]"),
        ({"type": "later"}, "[later]"),
        ({"type": "text", "text": 5}, "[text]"),
        ({}, "[None]"),
        ("loose", '[content of unknown form: "loose"]'),
        (None, "[content of unknown form: null]"),
    ],
)
def test_a_block_that_is_no_text_becomes_a_placeholder_and_a_change(block: Any, text: str) -> None:
    shown, (change,) = present_result({"content": [block]})
    assert shown == text
    assert (change.policy, change.after) == ("placeholder", text)


@pytest.mark.parametrize(
    ("block", "left_out"),
    [
        (
            {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/csv", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/csv"}},
        ),
        (
            {"type": "resource", "resource": {"text": "inside"}, "_meta": {}},
            {"type": "resource", "resource": {}, "_meta": {}},
        ),
        ({"type": "text", "text": "inside", "annotations": {"priority": 1}}, {"annotations": {"priority": 1}}),
        ({"type": "text", "text": "inside", "resource": 5}, {"resource": 5}),
    ],
)
def test_what_a_block_tells_besides_its_text_is_left_out_and_recorded(block: Any, left_out: Any) -> None:
    shown, (change,) = present_result({"content": [block]})
    assert shown == "inside"
    assert (change.policy, change.subject, change.before) == ("text_only", block["type"], left_out)


@pytest.mark.parametrize(
    ("result", "text", "policies"),
    [
        ({"content": [], "structuredContent": {"b": 1, "a": [None]}}, '{"b":1,"a":[null]}', ["structured_content"]),
        ({"structuredContent": None}, "null", ["structured_content"]),
        ({"content": []}, "", []),
        ({"content": "text"}, '{"content":"text"}', ["malformed_result"]),
        ({}, "{}", ["malformed_result"]),
        ([1], "[1]", ["malformed_result"]),
        (None, "null", ["malformed_result"]),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, "Error: no", ["mark_error"]),
        ({"content": [{"type": "text", "text": "error: no"}], "isError": True}, "error: no", []),
        ({"content": [], "isError": True}, "Error: ", ["mark_error"]),
        ({"content": [{"type": "text", "text": "no"}], "isError": "yes"}, "no", []),
        ({"content": [{"type": "text", "text": "a\ud800"}]}, "a\ufffd", ["lone_surrogates"]),
    ],
)
def test_other_results_are_shown_as_json_or_marked(result: Any, text: str, policies: list[str]) -> None:
    shown, changes = present_result(result)
    assert (shown, [change.policy for change in changes]) == (text, policies)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"code": -32602, "message": "Unknown tool"}, "MCP error -32602: Unknown tool"),
        ({"message": None}, "MCP error None: None"),
        ("odd", "MCP error None: odd"),
    ],
)
def test_a_protocol_error_is_shown_with_its_code_and_message(error: Any, text: str) -> None:
    assert present_protocol_error(error) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.lists(JSON | st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "resource"]), "text": JSON}))


@settings(deadline=None, max_examples=50)
@given(result=JSON | st.fixed_dictionaries({"content": BLOCKS, "isError": JSON}))
def test_any_result_becomes_text_that_a_provider_takes(result: Any) -> None:
    text, _ = present_result(result)
    assert text.encode().decode() == text


def test_of_a_result_with_very_many_odd_blocks_not_every_change_is_told() -> None:
    text, changes = present_result({"content": [{}] * 50_000, "isError": True})
    assert text.count("[None]") == 50_000
    assert len(changes) < 1100
    assert [(each.policy, each.before) for each in changes[-2:]] == [("more_changes", 49_001), ("mark_error", None)]
