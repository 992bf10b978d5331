"""The adapter for OpenAI-compatible chat, against an endpoint that misbehaves as servers do."""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from tests.models.fake_openai import (
    RESET,
    SILENCE,
    Answer,
    Request,
    answer,
    completion,
    error,
    fake_openai,
    text,
)

from mcptrials.errors import ProviderError, ServerError, UsageError
from mcptrials.events import CallAsked, ToolShown, Usage
from mcptrials.models.openai_chat import OpenAIChat
from mcptrials.protocols import Assistant, Message, Reply, System, ToolOutput, User
from mcptrials.trial import TrialKey

TRIAL = TrialKey(task_id="t", arm="a", number=1, attempt=1, seed=7)
HELLO = (User("hello"),)


def tool(input_schema: Any, description: str | None = "Looks.", name: str = "look") -> ToolShown:
    return ToolShown(shown_name=name, server="s", tool=name, description=description, input_schema=input_schema)


def call(arguments: str | None, name: str | None = "look", call_id: str | None = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asking(*calls: dict[str, Any], **keys: Any) -> Answer:
    return completion({"role": "assistant", "content": None, "tool_calls": calls, **keys}, "tool_calls")


def ask_all(
    conversations: Sequence[Sequence[Message]], *script: Answer, **settings: Any
) -> tuple[list[Reply], list[Request]]:
    """The replies to some requests, one after the other, and the requests as they came."""

    async def main() -> tuple[list[Reply], list[Request]]:
        async with fake_openai(*script) as fake:
            model = OpenAIChat("fake", base_url=fake.url)
            try:
                replies = [await model.request(messages, [tool({})], settings, TRIAL) for messages in conversations]
            finally:
                await model.aclose()
            return replies, fake.requests

    return anyio.run(main)


def ask(*script: Answer) -> Reply:
    return ask_all([HELLO], *script)[0][0]


def sent(tools: Sequence[ToolShown], **options: Any) -> Request:
    """The one request that the model sends for these tools and constructor options."""

    async def main() -> Request:
        async with fake_openai(text("hi")) as fake:
            model = OpenAIChat("fake", base_url=fake.url, **options)
            try:
                await model.request([System("be brief"), User("hello")], tools, {"max_tokens": 9, "seed": 3}, TRIAL)
            finally:
                await model.aclose()
            return fake.requests[0]

    return anyio.run(main)


def test_a_request_holds_model_messages_tools_and_settings_and_nothing_else() -> None:
    assert sent([tool({"type": "object"})]).json == {
        "model": "fake",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
            }
        ],
        "max_tokens": 9,
        "seed": 3,
    }


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"object","properties":{"b":{"type":"string"},"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{}}}',
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","x-odd":[1,1.0,1e3,null,true],"type":"object"}',
        '{"type":["object","null"],"description":"ünï \\"quoted\\" 日本 \\u007f","default":-0.0}',
        '{"properties":{"not":{"not":{}}}}',
        "{}",
        "true",
    ],
)
def test_a_schema_reaches_the_provider_byte_for_byte(schema: str) -> None:
    body = sent([tool(json.loads(schema))]).body.decode()
    expected = json.dumps(json.loads(schema), ensure_ascii=False, separators=(",", ":"))
    assert f'"parameters":{expected}}}}}' in body


def test_a_lone_surrogate_in_a_schema_is_sent_as_an_escape() -> None:
    assert b'"\\ud83d"' in sent([tool({"default": "\ud83d"})]).body


def test_a_missing_description_or_schema_is_left_out() -> None:
    assert sent([tool(None, description=None)]).json["tools"][0]["function"] == {"name": "look"}


def test_an_assistant_turn_is_replayed_with_its_argument_text_byte_for_byte() -> None:
    odd = '{"b" : 1,\n "a":1.0, "é": "\\u00e9\\/"}  '
    first = asking(call(odd), refusal=None, annotations=[], audio=None, function_call=None, reasoning_content="hm")
    (reply, _), requests = ask_all(
        [HELLO, [*HELLO, Assistant(ask(first)), ToolOutput("c1", "look", "result", is_error=False)]],
        first,
        text("done"),
    )
    assert reply.calls == (CallAsked(id="c1", name="look", raw_arguments=odd),)
    assert requests[1].json["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [call(odd)]},
        {"role": "tool", "tool_call_id": "c1", "content": "result"},
    ]
    assert json.dumps(odd, ensure_ascii=False).encode() in requests[1].body


def test_several_calls_keep_their_order_and_truncated_arguments_their_text() -> None:
    reply = ask(asking(call("{}", "b", "x"), call('{"a": [1, ', "a", "y")))
    assert [(c.id, c.name, c.raw_arguments) for c in reply.calls] == [("x", "b", "{}"), ("y", "a", '{"a": [1, ')]
    assert reply.stop == "calls"


def test_calls_without_id_get_ids_that_are_stable_and_replayed() -> None:
    first, second = asking(call("{}", call_id=None), call("{}", call_id="")), asking(call("{}", call_id=None))
    one = ask(first)
    results = [ToolOutput(c.id, "look", "r", is_error=False) for c in one.calls]
    (two, _), requests = ask_all([[*HELLO, Assistant(one), *results], HELLO], second, text("x"))
    assert [c.id for c in (*one.calls, *two.calls)] == ["call_0_0", "call_0_1", "call_1_0"]
    assert [c["id"] for c in requests[0].json["messages"][1]["tool_calls"]] == ["call_0_0", "call_0_1"]


def test_an_id_that_a_server_uses_twice_is_replaced() -> None:
    one = ask(asking(call("{}", call_id="same"), call("{}", call_id="same")))
    assert [c.id for c in one.calls] == ["same", "call_0_1"]


@pytest.mark.parametrize(
    ("message", "finish_reason", "stop"),
    [
        ({"content": "hi"}, "stop", "answer"),
        ({"content": "hi"}, None, "answer"),
        ({"content": "hi"}, "eos", "answer"),
        ({"content": None, "tool_calls": [call("{}")]}, "stop", "calls"),
        ({"content": None, "tool_calls": [call("{}")]}, "tool_calls", "calls"),
        ({"content": None, "tool_calls": []}, "tool_calls", "malformed_call"),
        ({"content": None, "tool_calls": None}, "tool_calls", "malformed_call"),
        ({"content": None, "tool_calls": [call("{}", name=None)]}, "tool_calls", "malformed_call"),
        ({"content": None, "tool_calls": [call("{}"), {"type": "function"}]}, "tool_calls", "malformed_call"),
        ({"content": "cut of"}, "length", "length"),
        ({"content": None, "tool_calls": [call('{"a')]}, "length", "length"),
        ({"content": None}, "content_filter", "refused"),
        ({"content": None, "refusal": "I will not."}, "stop", "refused"),
        ({"content": [{"type": "refusal", "refusal": "I will not."}]}, "stop", "refused"),
    ],
)
def test_why_the_model_stopped(message: dict[str, Any], finish_reason: str | None, stop: str) -> None:
    assert ask(completion({"role": "assistant", **message}, finish_reason)).stop == stop


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hi", "hi"),
        ("", ""),
        (None, None),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "ab"),
        ([], None),
    ],
)
def test_content_may_be_text_parts_or_nothing(content: Any, expected: str | None) -> None:
    assert ask(completion({"role": "assistant", "content": content})).text == expected


def test_the_text_of_a_refusal_is_the_text_of_the_reply() -> None:
    assert ask(completion({"role": "assistant", "content": None, "refusal": "I will not."})).text == "I will not."


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_read_but_not_sent_back(key: str) -> None:
    scripted = completion({"role": "assistant", "content": "hi", key: "because"})
    reply = ask(scripted)
    _, requests = ask_all([[*HELLO, Assistant(reply), User("go on")]], text("x"))
    assert reply.reasoning == "because"
    assert requests[0].json["messages"][1] == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"usage": None}, None),
        ({"usage": {}}, Usage()),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": True}}, Usage(input_tokens=5)),
        ({"usage": {"prompt_tokens": -5, "completion_tokens": 1.5}}, Usage()),
        ({"usage": {"prompt_tokens": 10**400, "completion_tokens": 10**12}}, Usage(output_tokens=10**12)),
        (
            {
                "usage": {
                    "prompt_tokens": 5,
                    "completion_tokens": 3,
                    "prompt_tokens_details": {"cached_tokens": 0},
                    "completion_tokens_details": {"reasoning_tokens": 2},
                }
            },
            Usage(input_tokens=5, output_tokens=3, cached_input_tokens=0, reasoning_tokens=2),
        ),
    ],
)
def test_tokens_that_are_not_reported_are_unknown(keys: dict[str, Any], expected: Usage | None) -> None:
    assert ask(completion({"role": "assistant", "content": "hi"}, **keys)).usage == expected


def test_the_whole_reply_is_kept_as_it_came() -> None:
    scripted = completion({"role": "assistant", "content": "hi", "odd": [1]}, x_extra={"a": None})
    reply = ask(scripted)
    assert reply.raw == json.loads(scripted.body)
    assert reply.native == reply.raw["choices"][0]["message"]
    assert reply.model == "fake-1"


@pytest.mark.parametrize(
    ("scripted", "cause", "status", "retryable"),
    [
        (error(429, "slow down"), "rate_limit", 429, True),
        (error(429, "no money", "insufficient_quota"), "quota", 429, False),
        (error(402, "pay"), "quota", 402, False),
        (error(401, "who?"), "auth", 401, False),
        (error(403, "no"), "auth", 403, False),
        (error(404, "no such model"), "http", 404, False),
        (error(400, "bad"), "http", 400, False),
        (error(408, "late"), "http", 408, True),
        (error(409, "busy"), "http", 409, True),
        (error(500, "oops"), "http", 500, True),
        (error(529, "overloaded"), "http", 529, True),
        (Answer(b"<html>Bad gateway</html>", 502), "http", 502, True),
        (answer({"detail": "no"}, 422), "http", 422, False),
        (answer([{"error": {"message": "x"}}], 503), "http", 503, True),
        (Answer(b"<html>hello</html>"), "http", 200, True),
        (Answer(b""), "http", 200, True),
        (Answer(b'{"choices": [NaN]}'), "http", 200, True),
        (Answer(b"[" * 100_000), "http", 200, True),
        (Answer(b"[" * 201 + b"]" * 201), "http", 200, True),
        (answer({"choices": []}), "http", 200, True),
        (answer({"choices": None}), "http", 200, True),
        (answer([]), "http", 200, True),
        (answer({"error": {"message": "upstream is full", "code": 429}}), "rate_limit", 429, True),
        (answer({"error": "upstream is gone"}), "http", 500, True),
        (RESET, "connection", None, True),
    ],
)
def test_a_failed_request_says_why_and_whether_to_try_again(
    scripted: Answer, cause: str, status: int | None, retryable: bool
) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(scripted)
    assert (caught.value.cause, caught.value.status, caught.value.retryable) == (cause, status, retryable)
    assert caught.value.message


def test_a_failed_request_is_one_attempt() -> None:
    async def main() -> int:
        async with fake_openai(error(500, "oops"), text("never asked for")) as fake:
            model = OpenAIChat("fake", base_url=fake.url)
            with pytest.raises(ProviderError):
                await model.request(HELLO, [], {}, TRIAL)
            await model.aclose()
            return len(fake.requests)

    assert anyio.run(main) == 1


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry_after": "2"}, 2.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "Thu, 01 Jan 99999999999999999999 00:00:00 GMT"}, None),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:00 +99999999999999"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_the_provider_asks_for_is_passed_on(headers: dict[str, str], expected: float | None) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(error(429, "slow down", **headers))
    assert caught.value.retry_after_s == expected


@pytest.mark.parametrize(
    "scripted",
    [
        error(400, "too long", "context_length_exceeded"),
        error(400, "This model's maximum context length is 4096 tokens."),
        error(400, "request (5194 tokens) exceeds the available context size (4096 tokens), try increasing it", 400),
        error(413, "prompt is too long: 9 tokens > 8 maximum"),
    ],
)
def test_a_conversation_that_no_longer_fits_is_laid_on_the_server_under_test(scripted: Answer) -> None:
    with pytest.raises(ServerError) as caught:
        ask(scripted)
    assert caught.value.cause == "context_overflow"


def test_silence_ends_in_a_timeout() -> None:
    async def main() -> None:
        async with fake_openai(SILENCE) as fake:
            model = OpenAIChat("fake", base_url=fake.url, timeout_s=0.05)
            try:
                await model.request(HELLO, [], {}, TRIAL)
            finally:
                await model.aclose()

    with pytest.raises(ProviderError) as caught:
        anyio.run(main)
    assert (caught.value.cause, caught.value.retryable) == ("timeout", True)


def test_nobody_listening_is_a_connection_failure() -> None:
    async def main() -> None:
        async with fake_openai() as fake:
            url = fake.url
        model = OpenAIChat("fake", base_url=url)
        try:
            await model.request(HELLO, [], {}, TRIAL)
        finally:
            await model.aclose()

    with pytest.raises(ProviderError) as caught:
        anyio.run(main)
    assert (caught.value.cause, caught.value.retryable) == ("connection", True)


def test_a_provider_that_wants_max_completion_tokens_is_asked_again_and_remembered() -> None:
    refusal = error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    _, requests = ask_all([HELLO, HELLO], refusal, text("a"), text("b"), max_tokens=5)
    limits = [{key: value for key, value in request.json.items() if "tokens" in key} for request in requests]
    assert limits == [{"max_tokens": 5}, {"max_completion_tokens": 5}, {"max_completion_tokens": 5}]


def test_a_provider_that_insists_on_its_reasoning_gets_it_back() -> None:
    thought = ask(completion({"role": "assistant", "content": "hi", "reasoning_content": "because"}))
    conversation: list[Message] = [*HELLO, Assistant(thought), User("go on")]
    refusal = error(400, "Missing `reasoning_content` field in the assistant message at index 1")
    _, requests = ask_all([conversation], refusal, text("a"))
    assert [request.json["messages"][1].get("reasoning_content") for request in requests] == [None, "because"]


def test_a_refusal_that_teaches_nothing_new_is_final() -> None:
    refusal = error(400, "Use 'max_completion_tokens' instead.")
    with pytest.raises(ProviderError):
        ask_all([HELLO], refusal, refusal, text("never asked for"), max_tokens=5)


def test_extra_headers_and_body_keys_are_sent() -> None:
    request = sent([], headers={"X-Team": "trials"}, extra_body={"cache_prompt": False, "seed": 4})
    assert request.headers["x-team"] == "trials"
    assert (request.json["cache_prompt"], request.json["seed"]) == (False, 4)
    assert "tools" not in request.json


def test_the_key_stands_in_the_authorization_header_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, f"environment-{name}")
    request = sent([], api_key="sk-mine")
    assert request.headers["authorization"] == "Bearer sk-mine"
    others = {name: value for name, value in request.headers.items() if name != "authorization"}
    assert "sk-mine" not in str(others) + request.path + request.body.decode()
    assert "environment-" not in str(request)


def test_another_server_never_gets_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert sent([]).headers["authorization"] == "Bearer not-needed"


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert sent([]).path == "/v1/chat/completions"


def test_without_key_and_server_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        OpenAIChat("fake")


def test_a_key_with_a_line_break_is_refused_before_any_request() -> None:
    with pytest.raises(UsageError, match="line breaks"):
        OpenAIChat("fake", base_url="http://127.0.0.1:9/v1", api_key="sk\n")


def test_the_key_of_the_environment_is_for_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere/v1")  # no run goes where its project file does not say
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    model = OpenAIChat("fake")
    anyio.run(model.aclose)
    assert model.endpoint is not None
    assert (model.endpoint.base_url, model.endpoint.api_key) == ("https://api.openai.com/v1", "sk-openai")


def test_many_requests_run_at_once() -> None:
    async def main() -> int:
        async with fake_openai(*[text("hi")] * 100) as fake:
            model = OpenAIChat("fake", base_url=fake.url)
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(model.request, HELLO, [], {}, TRIAL)
            await model.aclose()
            return fake.connections

    assert anyio.run(main) == 100


def test_a_cancelled_request_leaves_the_model_usable() -> None:
    async def main() -> str | None:
        async with fake_openai(SILENCE, text("still here")) as fake:
            model = OpenAIChat("fake", base_url=fake.url)
            with anyio.move_on_after(0.05):
                await model.request(HELLO, [], {}, TRIAL)
            reply = await model.request(HELLO, [], {}, TRIAL)
            await model.aclose()
            return reply.text

    assert anyio.run(main) == "still here"
