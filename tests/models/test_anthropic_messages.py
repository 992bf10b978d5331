"""The adapter for Anthropic's Messages API, against an endpoint that answers with bytes of ours."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from tests.models.fake_openai import RESET, Answer, Request, answer, fake_openai

from mcptrials.errors import ProviderError, ServerError, UsageError
from mcptrials.events import CallAsked, ToolShown, Usage
from mcptrials.models.anthropic_messages import AnthropicMessages
from mcptrials.protocols import Assistant, Message, Reply, System, ToolOutput, User
from mcptrials.trial import TrialKey

TRIAL = TrialKey(task_id="t", arm="a", number=1, attempt=1, seed=7)
HELLO = (User("hello"),)
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(22)).decode()
MARK = {"cache_control": {"type": "ephemeral"}}


def tool(input_schema: Any, description: str | None = "Looks.", name: str = "look") -> ToolShown:
    return ToolShown(shown_name=name, server="s", tool=name, description=description, input_schema=input_schema)


def message(*content: Any, stop_reason: str | None = "end_turn", **keys: Any) -> Answer:
    return answer({"type": "message", "model": "fake-1", "content": content, "stop_reason": stop_reason, **keys})


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(given: Any, call_id: str | None = "toolu_1", name: str | None = "look") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def asking(*blocks: dict[str, Any]) -> Answer:
    return message(*blocks, stop_reason="tool_use")


def refusal(status: int, kind: str, said: str = "no", **headers: str) -> Answer:
    return answer({"type": "error", "error": {"type": kind, "message": said}}, status, **headers)


def ask_all(
    conversations: Sequence[Sequence[Message]],
    *script: Answer,
    tools: Sequence[ToolShown] = (),
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[list[Reply], list[Request]]:
    """The replies to some requests, one after the other, and the requests as they came."""

    async def main() -> tuple[list[Reply], list[Request]]:
        async with fake_openai(*script) as fake:
            model = AnthropicMessages("fake", base_url=fake.url, **options)
            try:
                sent = {"prompt_cache": "off"} if settings is None else settings
                return [await model.request(each, tools, sent, TRIAL) for each in conversations], fake.requests
            finally:
                await model.aclose()

    return anyio.run(main)


def ask(*script: Answer) -> Reply:
    return ask_all([HELLO], *script)[0][0]


def body_of(conversation: Sequence[Message], **keys: Any) -> Any:
    return ask_all([conversation], message(text("hi")), **keys)[1][0].json


def shown(output: ToolOutput) -> Any:
    """The block that a result becomes."""
    [turn] = body_of([output])["messages"]
    assert turn["role"] == "user"
    return turn["content"][0]


def result(*blocks: Any, shows: str, is_error: bool = False, **keys: Any) -> ToolOutput:
    raw = {"content": list(blocks), **({"isError": True} if is_error else {}), **keys}
    return ToolOutput("toolu_1", "look", shows, is_error, raw)


# --- What is sent --------------------------------------------------------------------------------------------------


def test_a_request_holds_model_messages_tools_and_settings_and_nothing_else() -> None:
    settings = {"max_tokens": 9, "temperature": 0.5, "prompt_cache": "off"}
    assert body_of([System("be brief"), User("hello")], tools=[tool({"type": "object"})], settings=settings) == {
        "model": "fake",
        "messages": [{"role": "user", "content": [text("hello")]}],
        "system": [text("be brief")],
        "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
        "max_tokens": 9,
        "temperature": 0.5,
    }


def test_a_limit_on_the_reply_is_always_sent() -> None:
    assert body_of(HELLO, settings={})["max_tokens"] == 4096


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"object","properties":{"b":{"type":"string"},"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{}}}',
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","x-odd":[1,1.0,null,true],"type":"object"}',
        '{"type":"object","description":"ünï \\"quoted\\" 日本","default":-0.0}',
    ],
)
def test_a_schema_reaches_the_provider_byte_for_byte(schema: str) -> None:
    _, [request] = ask_all([HELLO], message(), tools=[tool(json.loads(schema))])
    expected = json.dumps(json.loads(schema), ensure_ascii=False, separators=(",", ":"))
    assert f'"input_schema":{expected}}}' in request.body.decode()


def test_the_cache_is_told_where_tools_prompt_and_conversation_end() -> None:
    body = body_of([System("s"), User("a")], tools=[tool({}, name="x"), tool({}, name="y")], settings={})
    assert [("cache_control" in each) for each in body["tools"]] == [False, True]
    assert body["system"] == [text("s") | MARK]
    assert body["messages"] == [{"role": "user", "content": [text("a") | MARK]}]
    assert "prompt_cache" not in body


def test_the_end_for_the_cache_moves_on_with_the_conversation() -> None:
    first = ask(asking(use({})))
    body = body_of([*HELLO, Assistant(first), result(text("r"), shows="r")], settings={"prompt_cache": "auto"})
    assert [json.dumps(turn).count("cache_control") for turn in body["messages"]] == [0, 0, 1]


def test_an_unknown_way_of_caching_is_an_error_of_the_project() -> None:
    with pytest.raises(UsageError, match="use auto or off"):
        ask_all([HELLO], settings={"prompt_cache": "always"})


def test_thinking_and_all_else_of_a_reply_is_replayed_unchanged() -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "text", "text": "I look.", "citations": None},
        use({"b": 1, "a": {"é": [1.0, None]}}),
        {"type": "of_tomorrow", "x": 1},
    ]
    first = ask(asking(*content))
    assert first.reasoning == "hm"
    assert first.calls == (CallAsked(id="toolu_1", name="look", raw_arguments='{"b":1,"a":{"é":[1.0,null]}}'),)
    _, [request] = ask_all([[*HELLO, Assistant(first), result(text("r"), shows="r")]], message())
    assert request.json["messages"][1] == {"role": "assistant", "content": content}
    expected = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    assert f'{{"role":"assistant","content":{expected}}}' in request.body.decode()


def test_several_results_stand_in_one_message_in_order() -> None:
    first = ask(asking(use({}, "x"), use({}, "y"), use({}, "z")))
    results = [ToolOutput(each, "look", f"r{each}", each == "y", None) for each in ("x", "y", "z")]
    turns = body_of([*HELLO, Assistant(first), *results])["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "x", "content": [text("rx")]},
        {"type": "tool_result", "tool_use_id": "y", "content": [text("ry")], "is_error": True},
        {"type": "tool_result", "tool_use_id": "z", "content": [text("rz")]},
    ]


def test_a_call_without_an_id_gets_one_that_is_replayed() -> None:
    first = ask(asking(use({}, None), text("and"), use({}, "same"), use({}, "same")))
    assert [call.id for call in first.calls] == ["call_0_0", "same", "call_0_2"]
    content = body_of([*HELLO, Assistant(first)])["messages"][1]["content"]
    assert [block.get("id") for block in content] == ["call_0_0", None, "same", "call_0_2"]


# --- Results of tools ----------------------------------------------------------------------------------------------


def image(data: str = PNG, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": kind}


def test_text_and_images_are_shown_as_the_server_sent_them() -> None:
    block = shown(result(text("a"), image(), text("b"), shows="a\n[image: image/png, 30 bytes]\nb"))
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    assert block["content"] == [text("a"), {"type": "image", "source": source}, text("b")]
    assert "is_error" not in block


def test_how_many_images_were_shown_as_images_is_told() -> None:
    output = result(image(), image("AAAA"), shows="[image: image/png, 30 bytes]\n[image: image/png, 3 bytes]")
    (reply,), _ = ask_all([[output]], message())
    assert reply.native_images == 1


@pytest.mark.parametrize(
    ("odd", "shows"),
    [
        (image("AAAA", "image/bmp"), "[image: image/bmp, 3 bytes]"),
        (image(PNG, "image/jpeg"), "[image: image/jpeg, 30 bytes]"),
        (image("no base64!"), "[image: image/png, 7 bytes]"),
        (image(""), "[image: image/png, 0 bytes]"),
        ({"type": "image", "mimeType": "image/png"}, "[image: image/png]"),
        ({"type": "image", "mimeType": ["image/png"], "data": PNG}, "[image: 30 bytes]"),
        ({"type": "resource_link", "uri": "file:///x", "name": "x"}, "[resource_link: file:///x, x]"),
        ({"type": "resource", "resource": {"uri": "u", "text": "inside"}}, "inside"),
        ({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}, "[audio: audio/wav, 3 bytes]"),
        ("bare", '[content of unknown form: "bare"]'),
    ],
)
def test_what_the_provider_does_not_take_is_shown_as_its_text_once(odd: Any, shows: str) -> None:
    assert shown(result(text("a"), odd, shows=f"a\n{shows}"))["content"] == [text("a"), text(shows)]


def test_an_error_is_marked_by_its_field_and_its_text_is_the_servers() -> None:
    block = shown(result(text("boom"), image(), shows="Error: boom\n[image: image/png, 30 bytes]", is_error=True))
    assert block["is_error"] is True
    assert [part["type"] for part in block["content"]] == ["text", "text"]  # the API takes no image in an error
    assert block["content"][0] == text("boom")


def test_a_text_that_a_policy_changed_stays_changed() -> None:
    assert shown(result(text("a" * 99), image(), shows="aaa [cut]"))["content"] == [text("aaa [cut]")]


@pytest.mark.parametrize(
    ("output", "content"),
    [
        (ToolOutput("t", "look", "MCP error -32602: no", True), [text("MCP error -32602: no")]),
        (ToolOutput("t", "look", '{"n":1}', False, {"content": [], "structuredContent": {"n": 1}}), [text('{"n":1}')]),
        (ToolOutput("t", "look", '{"odd":1}', False, {"odd": 1}), [text('{"odd":1}')]),
        (ToolOutput("t", "look", "[1]", False, [1]), [text("[1]")]),
        (ToolOutput("t", "look", "", False, {"content": []}), None),
        (ToolOutput("t", "look", "\n ", False, {"content": [text(""), text(" ")]}), None),
    ],
)
def test_a_result_without_blocks_is_its_text(output: ToolOutput, content: Any) -> None:
    assert shown(output).get("content") == content


# --- What is read --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "stop_reason", "stop", "said"),
    [
        ([text("hi"), text("!")], "end_turn", "answer", "hi!"),
        ([text("hi")], "stop_sequence", "answer", "hi"),
        ([text("hi")], None, "answer", "hi"),
        ([], "end_turn", "answer", None),
        ([text("hi"), use({})], "tool_use", "calls", "hi"),
        ([use({})], "end_turn", "calls", None),
        ([], "tool_use", "malformed_call", None),
        ([use({}, name=None)], "tool_use", "malformed_call", None),
        ([use({}), use({}, "y", name="")], "tool_use", "malformed_call", None),
        ([{"type": "tool_use", "name": {"a": 1}, "input": 5}], "tool_use", "malformed_call", None),
        ([text("cut of")], "max_tokens", "length", "cut of"),
        ([use({})], "max_tokens", "length", None),
        ([text("no")], "refusal", "refused", "no"),
        ([], "refusal", "refused", None),
        ([text("let me")], "pause_turn", "paused", "let me"),
        ([text("so long")], "model_context_window_exceeded", "context_overflow", "so long"),
        ([{}, {"type": "text"}], "end_turn", "answer", None),
    ],
)
def test_why_the_model_stopped_and_what_it_said(
    content: Any, stop_reason: str | None, stop: str, said: str | None
) -> None:
    reply = ask(message(*content, stop_reason=stop_reason))
    assert (reply.stop, reply.text) == (stop, said)


def test_why_a_model_refused_is_its_text_when_it_says_nothing_else() -> None:
    why = {"type": "refusal", "category": "cyber", "explanation": "It is unsafe."}
    assert ask(message(stop_reason="refusal", stop_details=why)).text == "It is unsafe."


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, Usage()),
        ({"input_tokens": 5, "output_tokens": 3}, Usage(input_tokens=5, output_tokens=3)),
        (
            {
                "input_tokens": 5,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "output_tokens": 3,
                "output_tokens_details": {"thinking_tokens": 2},
            },
            Usage(input_tokens=125, output_tokens=3, cached_input_tokens=100, reasoning_tokens=2),
        ),
        ({"cache_read_input_tokens": 0, "output_tokens": 1}, Usage(output_tokens=1, cached_input_tokens=0)),
    ],
)
def test_tokens_of_the_cache_count_as_input(usage: Any, expected: Usage | None) -> None:
    assert ask(message(text("hi"), usage=usage)).usage == expected


def test_the_whole_reply_is_kept_as_it_came() -> None:
    scripted = message(text("hi"), odd={"a": [None]})
    reply = ask(scripted)
    assert reply.raw == json.loads(scripted.body)
    assert (reply.native, reply.model) == (reply.raw["content"], "fake-1")


@pytest.mark.parametrize(
    ("scripted", "cause", "status", "retryable", "wait_s"),
    [
        (refusal(429, "rate_limit_error", retry_after="3"), "rate_limit", 429, True, 3.0),
        (refusal(529, "overloaded_error"), "http", 529, True, None),
        (refusal(500, "api_error"), "http", 500, True, None),
        (refusal(401, "authentication_error"), "auth", 401, False, None),
        (refusal(403, "permission_error"), "auth", 403, False, None),
        (refusal(404, "not_found_error"), "http", 404, False, None),
        (refusal(400, "invalid_request_error"), "http", 400, False, None),
        (refusal(200, "overloaded_error"), "http", 529, True, None),
        (answer({"content": None}), "http", 200, True, None),
        (answer({"content": "hi"}), "http", 200, True, None),
        (answer({"content": ["hi"]}), "http", 200, True, None),
        (answer({"content": [], "stop_reason": ["end_turn"]}), "http", 200, True, None),
        (answer([]), "http", 200, True, None),
        (Answer(b"<html>"), "http", 200, True, None),
        (RESET, "connection", None, True, None),
    ],
)
def test_a_failed_request_says_why_and_whether_to_try_again(
    scripted: Answer, cause: str, status: int | None, retryable: bool, wait_s: float | None
) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(scripted, message(text("never asked for")))
    failed = caught.value
    assert (failed.cause, failed.status, failed.retryable, failed.retry_after_s) == (cause, status, retryable, wait_s)


@pytest.mark.parametrize(
    "scripted",
    [
        refusal(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        refusal(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 9 > 10"),
        refusal(413, "request_too_large", "Request exceeds the maximum size"),
    ],
)
def test_a_conversation_that_no_longer_fits_is_laid_on_the_server_under_test(scripted: Answer) -> None:
    with pytest.raises(ServerError) as caught:
        ask(scripted)
    assert caught.value.cause == "context_overflow"


# --- Keys and headers ----------------------------------------------------------------------------------------------


def test_nothing_of_the_environment_reaches_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, f"environment-{name}")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Env: environment-header")
    _, [request] = ask_all([HELLO], message(), headers={"X-Team": "trials"})
    assert "environment-" not in str(request)
    assert request.headers["x-team"] == "trials"
    assert request.headers["anthropic-version"]
    assert request.path == "/v1/messages"


def test_the_key_stands_in_one_header_alone() -> None:
    _, [request] = ask_all([HELLO], message(), api_key="sk-mine")
    assert [name for name, value in request.headers.items() if "sk-mine" in value] == ["authorization"]
    assert "sk-mine" not in request.path + request.body.decode()


def test_without_key_and_server_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set the environment variable ANTHROPIC_API_KEY"):
        AnthropicMessages("fake")


def test_a_wrong_key_from_the_environment_is_traced_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-env")
    with pytest.raises(ProviderError, match="the environment's ANTHROPIC_API_KEY"):
        ask_all([HELLO], refusal(401, "authentication_error", "invalid x-api-key"), api_key="sk-from-env")


def test_the_key_of_the_environment_is_for_anthropic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://elsewhere")  # no run goes where its project file does not say
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-own")
    model = AnthropicMessages("fake")
    anyio.run(model.aclose)
    assert model.endpoint is not None
    assert (model.endpoint.base_url, model.endpoint.api_key) == ("https://api.anthropic.com", "sk-own")
