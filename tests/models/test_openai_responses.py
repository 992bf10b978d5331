"""The adapter for OpenAI's Responses API, against an endpoint that answers with bytes of ours."""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from tests.models.fake_openai import RESET, Answer, Request, answer, error, fake_openai

from mcptrials.errors import ProviderError, ServerError, UsageError
from mcptrials.events import CallAsked, ToolShown, Usage
from mcptrials.models.openai_responses import OpenAIResponses
from mcptrials.protocols import Assistant, Message, Reply, System, ToolOutput, User
from mcptrials.trial import TrialKey

TRIAL = TrialKey(task_id="t", arm="a", number=1, attempt=1, seed=7)
HELLO = (User("hello"),)


def tool(input_schema: Any, description: str | None = "Looks.", name: str = "look") -> ToolShown:
    return ToolShown(shown_name=name, server="s", tool=name, description=description, input_schema=input_schema)


def response(*output: Any, status: str | None = "completed", **keys: Any) -> Answer:
    return answer({"object": "response", "model": "fake-1", "output": output, "status": status, "error": None, **keys})


def says(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def call(arguments: Any, call_id: str | None = "c1", name: str | None = "look") -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": arguments}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA=="}


def ask_all(
    conversations: Sequence[Sequence[Message]], *script: Answer, tools: Sequence[ToolShown] = (), **settings: Any
) -> tuple[list[Reply], list[Request]]:
    """The replies to some requests, one after the other, and the requests as they came."""

    async def main() -> tuple[list[Reply], list[Request]]:
        async with fake_openai(*script) as fake:
            model = OpenAIResponses("fake", base_url=fake.url)
            try:
                return [await model.request(each, tools, settings, TRIAL) for each in conversations], fake.requests
            finally:
                await model.aclose()

    return anyio.run(main)


def ask(*script: Answer) -> Reply:
    return ask_all([HELLO], *script)[0][0]


def test_a_request_holds_model_input_tools_and_settings_and_stores_nothing() -> None:
    _, [request] = ask_all(
        [[System("be brief"), User("hello")]],
        response(says("hi")),
        tools=[tool({"type": "object"})],
        max_tokens=9,
        temperature=0.5,
    )
    assert request.path == "/v1/responses"
    assert request.json == {
        "model": "fake",
        "input": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "store": False,
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Looks.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 9,
        "temperature": 0.5,
    }


def test_reasoning_and_calls_are_replayed_byte_for_byte() -> None:
    odd = '{"b" : 1,\n "a":1.0, "é": "\\u00e9\\/"}  '
    output = [THOUGHT, says("I look."), call(odd), {"type": "of_tomorrow", "x": None}]
    first = ask(response(*output))
    assert first.calls == (CallAsked(id="c1", name="look", raw_arguments=odd),)
    _, [request] = ask_all([[*HELLO, Assistant(first), ToolOutput("c1", "look", "r", is_error=False)]], response())
    assert request.json["input"][1:] == [*output, {"type": "function_call_output", "call_id": "c1", "output": "r"}]
    assert json.dumps(output, ensure_ascii=False, separators=(",", ":"))[1:-1] in request.body.decode()


def test_calls_without_id_get_ids_that_are_replayed() -> None:
    first = ask(response(call("{}", None), THOUGHT, call("{}", "same"), call("{}", "same")))
    assert [each.id for each in first.calls] == ["call_0_0", "same", "call_0_2"]
    _, [request] = ask_all([[*HELLO, Assistant(first)]], response())
    assert [item.get("call_id") for item in request.json["input"]] == [None, "call_0_0", None, "same", "call_0_2"]


@pytest.mark.parametrize(
    ("output", "keys", "stop", "said"),
    [
        ([says("hi"), says("!")], {}, "answer", "hi!"),
        ([says("hi")], {"status": None}, "answer", "hi"),
        ([], {}, "answer", None),
        ([call("{}")], {}, "calls", None),
        ([says("I look"), call('{"a": [1, ')], {}, "calls", "I look"),
        ([call("{}", name=None)], {}, "malformed_call", None),
        ([call("{}"), call("{}", name="")], {}, "malformed_call", None),
        (
            [says("cut of")],
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "cut of",
        ),
        ([THOUGHT], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", None),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused", None),
        ([], {"status": "incomplete"}, "length", None),
        (
            [{"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}],
            {},
            "refused",
            "I will not.",
        ),
        ([{}, {"type": "message"}], {}, "answer", None),
    ],
)
def test_why_the_model_stopped_and_what_it_said(
    output: Sequence[Any], keys: dict[str, Any], stop: str, said: str | None
) -> None:
    reply = ask(response(*output, **keys))
    assert (reply.stop, reply.text) == (stop, said)


@pytest.mark.parametrize("key", ["summary", "content"])
def test_reasoning_that_can_be_read_is_read(key: str) -> None:
    thought = {"type": "reasoning", "summary": [], key: [{"type": "x", "text": "hm, "}, {"type": "x", "text": "yes"}]}
    assert ask(response(thought, says("hi"))).reasoning == "hm, yes"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, Usage()),
        (
            {
                "input_tokens": 5,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens": 3,
                "output_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(input_tokens=5, output_tokens=3, cached_input_tokens=4, reasoning_tokens=2),
        ),
    ],
)
def test_tokens_that_are_not_reported_are_unknown(usage: Any, expected: Usage | None) -> None:
    assert ask(response(says("hi"), usage=usage)).usage == expected


def test_the_whole_reply_is_kept_as_it_came() -> None:
    scripted = response(says("hi"), odd={"a": [None]})
    reply = ask(scripted)
    assert reply.raw == json.loads(scripted.body)
    assert (reply.native, reply.model) == (reply.raw["output"], "fake-1")


@pytest.mark.parametrize(
    ("scripted", "cause", "status", "retryable"),
    [
        (error(429, "slow down"), "rate_limit", 429, True),
        (error(429, "no money", "insufficient_quota"), "quota", 429, False),
        (error(401, "who?"), "auth", 401, False),
        (error(400, "bad"), "http", 400, False),
        (error(500, "oops"), "http", 500, True),
        (response(status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}), "rate_limit", 429, True),
        (response(says("x"), status="failed", error={"code": "server_error", "message": "x"}), "http", 500, True),
        (response(status="failed", error={"code": "invalid_prompt", "message": "no"}), "http", 400, False),
        (response(status="failed"), "http", 200, True),
        (response(status="in_progress"), "http", 200, True),
        (answer({"output": None}), "http", 200, True),
        (answer({"output": "hi"}), "http", 200, True),
        (answer({"output": [5]}), "http", 200, True),
        (answer({"output": [], "status": ["completed"]}), "http", 200, True),
        (answer({"output": [{"type": "message", "content": ["hi"]}]}), "http", 200, True),
        (answer([]), "http", 200, True),
        (RESET, "connection", None, True),
    ],
)
def test_a_failed_request_says_why_and_whether_to_try_again(
    scripted: Answer, cause: str, status: int | None, retryable: bool
) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(scripted)
    assert (caught.value.cause, caught.value.status, caught.value.retryable) == (cause, status, retryable)


def test_a_conversation_that_no_longer_fits_is_laid_on_the_server_under_test() -> None:
    with pytest.raises(ServerError) as caught:
        ask(error(400, "Your input exceeds the context window of this model.", "context_length_exceeded"))
    assert caught.value.cause == "context_overflow"


@pytest.mark.parametrize(
    "message", ["Encrypted content is not supported with this model.", "Unknown parameter: 'include'."]
)
def test_a_model_that_does_not_encrypt_reasoning_is_not_asked_to_again(message: str) -> None:
    _, requests = ask_all([HELLO, HELLO], error(400, message), response(says("a")), response(says("b")))
    assert [("include" in request.json) for request in requests] == [True, False, False]


def test_without_key_and_server_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        OpenAIResponses("fake")
