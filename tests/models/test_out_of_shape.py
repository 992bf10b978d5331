"""Answers of a chat endpoint that no model is to blame for, and what requests under way together learn."""

import gzip
from typing import Any

import anyio
import pytest
from tests.models.fake_openai import Answer, Request, answer, completion, error, fake_openai, text
from tests.models.test_openai_chat import HELLO, TRIAL, ask, call

from mcptrials.errors import ProviderError
from mcptrials.models.openai_chat import OpenAIChat
from mcptrials.protocols import Assistant, Message, User

ODD_REASONS: tuple[Any, ...] = (["stop"], {}, 5)
ODD_MESSAGES: tuple[Any, ...] = (None, "hi", [], 5)


@pytest.mark.parametrize(
    "scripted",
    [
        *[
            completion({"role": "assistant", "content": None, "tool_calls": asked}, "tool_calls")
            for asked in ({"function": 5}, 5, "x", ["x"], [call("{}"), None])
        ],
        *[answer({"choices": [{"message": {"content": "hi"}, "finish_reason": odd}]}) for odd in ODD_REASONS],
        *[completion(message) for message in ODD_MESSAGES],
        *[completion({"role": "assistant", "content": content}) for content in (5, {"text": "a"}, ["a"], [None])],
        answer({"choices": [{"finish_reason": "stop"}]}),
        answer({"choices": ["hi"]}),
        answer({"choices": {"0": {}}}),
        answer({"error": {"message": "upstream is gone", "code": 200}}),
    ],
)
def test_an_answer_out_of_shape_is_the_providers_fault(scripted: Answer) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(scripted)
    assert (caught.value.cause, caught.value.retryable) == ("http", True)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_without_end_is_not_read_to_its_end(packed: bool, status: int) -> None:
    body = b"z" * ((64 << 20) + 1)
    scripted = Answer(gzip.compress(body, 1), status, {"content-encoding": "gzip"}) if packed else Answer(body, status)
    with pytest.raises(ProviderError, match="larger than 64 MiB") as caught:
        ask(scripted)
    assert (caught.value.cause, caught.value.status, caught.value.retryable) == ("http", status, True)


def test_requests_that_were_under_way_together_all_learn_the_dialect() -> None:
    thought = ask(completion({"role": "assistant", "content": "hi", "reasoning_content": "because"}))
    conversation: list[Message] = [*HELLO, Assistant(thought), User("go on")]

    def strict(request: Request) -> Answer:
        if "max_tokens" in request.json:
            return error(400, "Use 'max_completion_tokens' instead of 'max_tokens'.")
        if "reasoning_content" not in request.json["messages"][1]:
            return error(400, "Missing `reasoning_content` field in the assistant message at index 1")
        return text("a")

    async def main() -> int:
        async with fake_openai(*[strict] * 40) as fake:
            model = OpenAIChat("fake", base_url=fake.url)
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    for _ in range(10):
                        tasks.start_soon(model.request, conversation, [], {"max_tokens": 5}, TRIAL)
            await model.aclose()
            return sum("max_tokens" not in request.json for request in fake.requests)

    assert anyio.run(main) >= 10
