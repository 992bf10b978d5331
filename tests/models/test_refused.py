"""Parameters that a model does not take, through each adapter: dropped once, from then on, and told."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from tests.models.fake_openai import Answer, Request, answer, error, fake_openai, text

from mcptrials.errors import ProviderError
from mcptrials.models.anthropic_messages import AnthropicMessages
from mcptrials.models.openai_chat import OpenAIChat
from mcptrials.models.openai_responses import OpenAIResponses
from mcptrials.protocols import Model, Reply, User
from mcptrials.trial import TrialKey

TRIAL = TrialKey(task_id="t", arm="a", number=1, attempt=1, seed=7)
Make = Callable[..., Model]

GOOD: dict[Make, Answer] = {
    OpenAIChat: text("hi"),
    OpenAIResponses: answer({"output": [], "status": "completed"}),
    AnthropicMessages: answer({"content": [], "stop_reason": "end_turn"}),
}
adapters = pytest.mark.parametrize("make", GOOD)


def ask(make: Make, *script: Answer, times: int = 1, **settings: Any) -> tuple[list[Reply], list[Request]]:
    async def main() -> tuple[list[Reply], list[Request]]:
        async with fake_openai(*script) as fake:
            model = make("fake", base_url=fake.url)
            try:
                return [await model.request([User("hi")], [], settings, TRIAL) for _ in range(times)], fake.requests
            finally:
                await model.aclose()

    return anyio.run(main)


def sent(requests: Sequence[Request], *names: str) -> list[list[str]]:
    return [[name for name in names if name in request.json] for request in requests]


@adapters
def test_what_was_sent_besides_the_content_is_told(make: Make) -> None:
    [reply], [request] = ask(make, GOOD[make], temperature=0.5, max_tokens=7)
    content = {"messages", "input", "system", "tools"}
    assert reply.params == {key: value for key, value in request.json.items() if key not in content}
    assert reply.params["temperature"] == 0.5
    assert reply.dropped == ()


@adapters
def test_a_parameter_that_a_refusal_names_is_not_sent_again_and_told(make: Make) -> None:
    refusal = error(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    replies, requests = ask(make, refusal, GOOD[make], GOOD[make], times=2, temperature=0.5, top_p=0.9)
    assert sent(requests, "temperature", "top_p") == [["temperature", "top_p"], ["top_p"], ["top_p"]]
    assert [reply.dropped for reply in replies] == [("temperature",)] * 2
    assert [("temperature" in reply.params) for reply in replies] == [False, False]


@pytest.mark.parametrize(
    ("status", "message", "dropped"),
    [
        (400, "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is "
         "supported.", "temperature"),
        (400, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.", "top_p"),
        (400, "`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
        (400, "seed: Extra inputs are not permitted", "seed"),
        (400, "Unknown name \"seed\": Cannot find field.", "seed"),
        (422, "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]",
         "seed"),
    ],
)  # fmt: skip
@adapters
def test_refusals_are_worded_in_many_ways(make: Make, status: int, message: str, dropped: str) -> None:
    [reply], requests = ask(make, error(status, message), GOOD[make], temperature=0.5, top_p=0.9, seed=3)
    assert reply.dropped == (dropped,)
    assert len(requests) == 2


@adapters
def test_parameters_that_are_refused_one_after_the_other_are_all_dropped(make: Make) -> None:
    refusals = [error(400, f"'{name}' is not supported") for name in ("temperature", "top_p", "seed")]
    [reply], requests = ask(make, *refusals, GOOD[make], temperature=0.5, top_p=0.9, seed=3)
    assert reply.dropped == ("temperature", "top_p", "seed")
    assert len(requests) == 4


@pytest.mark.parametrize(
    "message",
    [
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
        "temperature: range: 0..1",
        "temperature: Input should be less than or equal to 1",
        "temperature must be between 0 and 2",
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
        "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
        "'seed' is not supported",
        "messages.1.temperature_log: Extra inputs are not permitted",
    ],
)
@adapters
def test_a_wrong_value_and_any_other_setting_are_the_users_to_mend(make: Make, message: str) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(make, error(400, message), GOOD[make], temperature=3, reasoning_effort="high")
    assert caught.value.status == 400


@adapters
def test_a_provider_that_refuses_what_is_no_longer_sent_is_not_asked_without_end(make: Make) -> None:
    with pytest.raises(ProviderError):
        ask(make, *[error(400, "'temperature' is not supported")] * 5, temperature=0.5)


@adapters
def test_requests_that_were_under_way_together_all_learn_from_their_refusals(make: Make) -> None:
    def strict(request: Request) -> Answer:
        return error(400, "'temperature' is not supported") if "temperature" in request.json else GOOD[make]

    async def main() -> int:
        async with fake_openai(*[strict] * 20) as fake:
            model = make("fake", base_url=fake.url)
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    for _ in range(10):
                        tasks.start_soon(model.request, [User("hi")], [], {"temperature": 0.5}, TRIAL)
            await model.aclose()
            return sum("temperature" not in request.json for request in fake.requests)

    assert anyio.run(main) == 10
