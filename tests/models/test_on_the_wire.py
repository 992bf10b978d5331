"""A whole trial through each adapter: what a server sends reaches the provider unchanged, to the byte."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.tiny_project import mcptrials
from tests.models.fake_openai import Answer, Request, answer, completion, error, fake_openai
from tests.models.rich_server import INSTRUCTIONS, PNG, RESULT, TOOLS
from tests.projects import Played, play

from mcptrials.errors import UsageError
from mcptrials.events import ModelReply, parse_event

pytestmark = pytest.mark.anyio

DONE = "<answer>done</answer>"
SERVER = {"command": "{python}", "args": [str(Path(__file__).with_name("rich_server.py"))]}
ODD = '{"who" : 1,\n "kind":"x", "é": "\\u00e9\\/", "n":1.50}  '


def bytes_of(value: Any) -> bytes:
    """The one way in which a value is written: its keys in their order, nothing escaped that need not be."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Adapter:
    """One way of speaking to a provider, with replies in its form."""

    name: str
    schema_key: str
    ready: Answer
    call: Answer
    replayed: bytes
    done: Answer


def chat_call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*calls: dict[str, Any], content: str | None = None) -> Answer:
    message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    return completion(message, "tool_calls" if calls else "stop")


def response(*output: dict[str, Any]) -> Answer:
    return answer({"model": "fake", "status": "completed", "output": output})


def item(name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc", "call_id": "c1", "name": name, "arguments": arguments}


def message(*content: dict[str, Any]) -> Answer:
    return answer({"model": "fake", "stop_reason": "end_turn", "content": content})


def use(name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "c1", "name": name, "input": given}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA=="}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
OUTPUT_TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": DONE}]}
ADAPTERS = {
    "openai": Adapter(
        "openai",
        "parameters",
        chat(chat_call("ready", "{}")),
        chat(chat_call("rich", ODD)),
        bytes_of([chat_call("rich", ODD)]),
        chat(content=DONE),
    ),
    "openai-responses": Adapter(
        "openai-responses",
        "parameters",
        response(item("ready", "{}")),
        response(THOUGHT, item("rich", ODD)),
        bytes_of([THOUGHT, item("rich", ODD)])[1:-1],
        response(OUTPUT_TEXT),
    ),
    "anthropic": Adapter(
        "anthropic",
        "input_schema",
        message(use("ready", {})),
        message(THINKING, use("rich", json.loads(ODD))),
        bytes_of([THINKING, use("rich", json.loads(ODD))]),
        message({"type": "text", "text": DONE}),
    ),
}


async def played(
    folder: Path, adapter: str, *script: Answer, images: str = "native", **model: Any
) -> tuple[Played, Sequence[Request]]:
    """A trial against the rich server; the requests are those of the trial alone."""
    async with fake_openai(ADAPTERS[adapter].ready, *script) as fake:
        models = [{"model": f"{adapter}:fake", "base_url": fake.url, **model}]
        hosts = [{"host": "loop", "instructions": True, "images": images}]
        ended = await play(folder, models=models, hosts=hosts, servers={"rich": SERVER})
        return ended, fake.requests[1:]


@pytest.mark.parametrize("name", ADAPTERS)
async def test_tools_of_every_page_and_instructions_reach_the_model_unchanged(name: str, tmp_path: Path) -> None:
    adapter = ADAPTERS[name]
    ended, [first, second] = await played(tmp_path, name, adapter.call, adapter.done)
    assert ended.verdict == ("passed", "none", None)
    for request in (first, second):
        for tool in TOOLS:
            described = bytes_of({"description": tool["description"]})[1:-1]
            assert described + b"," + bytes_of({adapter.schema_key: tool["inputSchema"]})[1:-1] in request.body
        assert bytes_of(INSTRUCTIONS)[1:] in request.body
    assert adapter.replayed in second.body


@pytest.mark.parametrize("name", ["openai", "openai-responses"])
async def test_a_result_is_shown_as_text_by_the_policies_that_are_recorded(name: str, tmp_path: Path) -> None:
    adapter = ADAPTERS[name]
    ended, [_, second] = await played(tmp_path, name, adapter.call, adapter.done)
    assert bytes_of(ended.shown[0]) in second.body
    assert ended.record.params["native_images"] == 0


async def test_a_result_is_shown_to_anthropics_models_in_its_own_blocks(tmp_path: Path) -> None:
    adapter = ADAPTERS["anthropic"]
    ended, [_, second] = await played(tmp_path, "anthropic", adapter.call, adapter.done)
    [result] = second.json["messages"][2]["content"]
    assert result["content"] == [
        RESULT["content"][0],
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "text", "text": "[resource_link: file:///x, x]"},
    ]
    assert ended.record.params["native_images"] == 1
    assert [reply.native_images for reply in ended.transcript.replies] == [0, 1]
    page = await anyio.to_thread.run_sync(mcptrials, tmp_path, "show", ended.record.run_id, "task")
    assert "was shown images themselves, not placeholders: 1 so far" in page.out


async def test_images_are_placeholders_where_the_host_wants_it_so(tmp_path: Path) -> None:
    adapter = ADAPTERS["anthropic"]
    ended, [_, second] = await played(tmp_path, "anthropic", adapter.call, adapter.done, images="placeholder")
    [result] = second.json["messages"][2]["content"]
    assert result["content"] == [{"type": "text", "text": ended.shown[0]}]
    assert PNG.encode() not in second.body
    assert ended.record.params["native_images"] == 0


async def test_what_was_really_sent_is_recorded_and_what_was_dropped(tmp_path: Path) -> None:
    adapter = ADAPTERS["openai"]
    async with fake_openai(error(400, "'seed' is not supported"), adapter.ready, adapter.done) as fake:
        models = [{"model": "openai:fake", "base_url": fake.url, "settings": {"seed": 3, "temperature": 0.5}}]
        ended = await play(tmp_path, models=models, servers={"rich": SERVER})
    assert ended.record.params["model_settings"]["seed"] == 3
    assert ended.record.params["sent"] == {"model": "fake", "max_tokens": 4096, "temperature": 0.5}
    assert ended.record.params["dropped"] == ["seed"]
    assert [(reply.params, reply.dropped) for reply in ended.transcript.replies] == [
        (ended.record.params["sent"], ("seed",))
    ]


async def test_a_reply_of_a_transcript_from_before_that_was_recorded_can_be_read() -> None:
    old = {"kind": "model_reply", "at_ms": 1.0, "ms": 1.0, "turn": 1, "text": "hi", "reasoning": None, "calls": []}
    old |= {"call_source": "native", "stop": "answer", "usage": None, "model": None, "native": None}
    event = parse_event(old)
    assert isinstance(event, ModelReply)
    assert (event.params, event.dropped, event.native_images) == ({}, (), 0)


async def test_a_pause_of_the_provider_is_gone_on_from_and_is_no_answer(tmp_path: Path) -> None:
    searched = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "x"}}
    usage = {"input_tokens": 10, "output_tokens": 1}
    paused = answer({"model": "fake", "stop_reason": "pause_turn", "content": [searched], "usage": usage})
    done = answer({"model": "fake", "content": [{"type": "text", "text": DONE}], "usage": usage})
    ended, requests = await played(tmp_path, "anthropic", paused, done)
    assert ended.verdict == ("passed", "none", None)
    assert [turn["role"] for turn in requests[1].json["messages"]] == ["user", "assistant"]
    assert requests[1].json["messages"][1]["content"] == [searched]
    assert [reply.stop for reply in ended.transcript.replies] == ["paused", "answer"]
    assert (ended.record.input_tokens, ended.record.output_tokens) == (20, 2)


async def test_a_budget_for_thinking_meets_the_limit_of_the_trials_before_the_run(tmp_path: Path) -> None:
    def strict(request: Request) -> Answer:
        if request.json["max_tokens"] > request.json["thinking"]["budget_tokens"]:
            return ADAPTERS["anthropic"].done
        return error(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")

    settings = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    async with fake_openai(*[strict] * 4) as fake:
        models = [{"model": "anthropic:fake", "base_url": fake.url, "settings": settings}]
        assert (await play(tmp_path, models=models, servers={"rich": SERVER})).record.passed
        limits = {"output_tokens_per_request": 1024}
        with pytest.raises(UsageError, match="must be greater than"):
            await play(tmp_path, models=models, servers={"rich": SERVER}, limits=limits)


async def test_a_reply_that_fills_the_window_is_laid_on_the_server(tmp_path: Path) -> None:
    full = answer({"model": "fake", "stop_reason": "model_context_window_exceeded", "content": []})
    ended, _ = await played(tmp_path, "anthropic", ADAPTERS["anthropic"].call, full)
    assert ended.verdict == ("failed", "server", "context_overflow")


@pytest.mark.parametrize(("name", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
async def test_a_wrong_key_is_found_before_the_run_and_traced_to_its_variable(
    name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-wr0ng-key-of-the-environment"
    async with fake_openai(error(401, f"Incorrect API key provided: {key}")) as fake:
        monkeypatch.setenv(variable, key)
        models = [{"model": f"{name}:fake", "base_url": fake.url, "api_key": f"${{{variable}}}"}]
        with anyio.fail_after(20), pytest.raises(UsageError, match=f"the environment's {variable}") as caught:
            await play(tmp_path, models=models, servers={"rich": SERVER})
    assert key not in str(caught.value)
