"""Patience with a provider: what is waited out, what is given up, and what never leaves the house."""

import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcptrials.errors import HarnessError, ProviderError, ServerError
from mcptrials.events import Event, ModelAttempt, ToolShown
from mcptrials.models.patient import Patient, Pause, RetryPolicy
from mcptrials.models.scripted import Scripted
from mcptrials.protocols import Assistant, Message, Reply, System, ToolOutput, User
from mcptrials.rollout import TrialClock
from mcptrials.trial import TrialKey

pytestmark = pytest.mark.anyio

TRIAL = TrialKey(task_id="t", arm="a", number=1, attempt=1, seed=7)
DONE = {"answer": "done"}
QUICK = RetryPolicy(attempts=3, total_wait_s=2, first_wait_s=0.02, longest_wait_s=0.1, spread_s=0.02)


def fails(status: int | None, retry_after_s: float | None = None, cause: str | None = None) -> dict[str, Any]:
    return {"error": {"status": status, "retry_after_s": retry_after_s, "cause": cause}}


class Waiting:
    """A patient model that plays steps, with its clock and what it records."""

    def __init__(
        self, folder: Path, *steps: Mapping[str, Any], policy: RetryPolicy = QUICK, pause: Pause | None = None
    ) -> None:
        path = folder / f"script-{len(list(folder.iterdir()))}.json"
        path.write_text(json.dumps({"default": {"steps": steps}}), "utf-8")
        self.clock = TrialClock()
        self.events: list[Event] = []
        self.model = Patient(Scripted(str(path)), pause or Pause(), self.clock, self.events.append, find_secret, policy)

    async def ask(self, *messages: Message, tools: Sequence[ToolShown] = (), trial: TrialKey = TRIAL) -> Reply:
        with anyio.fail_after(20):
            return await self.model.request(messages or (User("go"),), tools, {}, trial)

    @property
    def attempts(self) -> list[ModelAttempt]:
        return [event for event in self.events if isinstance(event, ModelAttempt)]


def find_secret(text: str) -> str | None:
    return "TOKEN" if "s3cret" in text else None


async def test_a_rate_limit_is_waited_out_and_does_not_use_up_the_trials_time(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, fails(429, retry_after_s=0.6), DONE)
    with waiting.clock.limit(0.4) as limit:
        reply = await waiting.ask()
    assert not limit.cancelled_caught
    assert reply.text == "<answer>done</answer>"
    assert [(each.attempt, each.status, each.wait_ms) for each in waiting.attempts] == [(1, 429, 600), (2, 200, 0)]
    assert 0.55 < waiting.clock.waited_s < 2
    assert waiting.attempts[1].at_ms >= 600


async def test_a_server_error_is_tried_again_after_growing_waits(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, fails(503), fails(None, cause="connection"), DONE)
    await waiting.ask()
    first, second, last = waiting.attempts
    assert (first.status, second.status, last.status) == (503, None, 200)
    assert first.error == "scripted failure 503"
    assert last.error is None
    assert 10 <= first.wait_ms <= 20 <= second.wait_ms <= 40
    assert waiting.clock.waited_s * 1000 >= first.wait_ms + second.wait_ms


async def test_server_errors_are_given_up_after_the_attempts_of_the_policy(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, *[fails(500)] * 5)
    with pytest.raises(ProviderError) as caught:
        await waiting.ask()
    assert caught.value.cause == "http"
    assert [(each.attempt, each.status) for each in waiting.attempts] == [(1, 500), (2, 500), (3, 500)]
    assert waiting.attempts[-1].wait_ms == 0


async def test_a_rate_limit_is_waited_out_beyond_those_attempts(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, *[fails(429, retry_after_s=0.01)] * 6, DONE)
    await waiting.ask()
    assert len(waiting.attempts) == 7


async def test_a_rate_limit_longer_than_the_policy_is_given_up_at_once(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, fails(429, retry_after_s=3600), DONE)
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        await waiting.ask()
    assert caught.value.cause == "rate_limit"
    assert len(waiting.attempts) == 1
    assert time.monotonic() - began < 1


async def test_a_provider_that_asks_for_no_time_again_and_again_is_given_up(tmp_path: Path) -> None:
    policy = RetryPolicy(attempts=3, total_wait_s=0.3, first_wait_s=0.01, longest_wait_s=0.1)
    waiting = Waiting(tmp_path, *[fails(429, retry_after_s=0)] * 1000, policy=policy)
    with pytest.raises(ProviderError):
        await waiting.ask()
    assert 3 < len(waiting.attempts) < 30


@pytest.mark.parametrize(("status", "cause"), [(401, "auth"), (403, "auth"), (402, "quota"), (400, "http")])
async def test_permanent_refusals_are_given_up_at_once(status: int, cause: str, tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, fails(status), DONE)
    with pytest.raises(ProviderError) as caught:
        await waiting.ask()
    assert caught.value.cause == cause
    assert [(each.attempt, each.status, each.wait_ms) for each in waiting.attempts] == [(1, status, 0)]


async def test_an_overflow_is_the_servers_and_not_tried_again(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, fails(None, cause="context_overflow"), DONE)
    with pytest.raises(ServerError):
        await waiting.ask()
    assert [(each.status, each.wait_ms) for each in waiting.attempts] == [(None, 0)]


async def test_one_trials_rate_limit_holds_back_the_others(tmp_path: Path) -> None:
    pause = Pause()
    limited = Waiting(tmp_path, fails(429, retry_after_s=0.5), DONE, pause=pause)
    other = Waiting(tmp_path, DONE, DONE, pause=pause)
    await other.ask()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(limited.ask)
        await anyio.wait_all_tasks_blocked()
        with other.clock.limit(0.2) as limit:
            await other.ask()
    before, held = other.attempts
    assert not limit.cancelled_caught
    assert held.at_ms - before.at_ms >= 450
    assert other.clock.waited_s > 0.3


async def test_trials_that_one_pause_held_back_begin_again_one_after_the_other(tmp_path: Path) -> None:
    policy = RetryPolicy(spread_s=0.4)
    pause = Pause()
    # Trials of two arms with one seed among them: a pair would start together.
    trials = [TRIAL.model_copy(update={"arm": arm, "seed": seed}) for seed in range(5) for arm in "ab"]
    held = [Waiting(tmp_path, DONE, policy=policy, pause=pause) for _ in trials]
    began = time.monotonic()
    pause.extend(0.2)
    async with anyio.create_task_group() as tasks:
        for waiting, trial in zip(held, trials, strict=True):
            tasks.start_soon(partial(waiting.ask, trial=trial))
    starts_ms = [waiting.attempts[0].at_ms for waiting in held]
    assert min(starts_ms) >= 180
    assert max(starts_ms) - min(starts_ms) > 100
    assert len({round(start / 5) for start in starts_ms}) > 5
    assert time.monotonic() - began < 10
    assert all(waiting.clock.waited_s >= waiting.attempts[0].at_ms / 1000 - 0.1 for waiting in held)


async def test_a_trial_that_is_cancelled_while_it_waits_ends_at_once(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, fails(429, retry_after_s=60), DONE, policy=RetryPolicy())
    with anyio.move_on_after(0.2) as scope:
        await waiting.ask()
    assert scope.cancelled_caught
    assert len(waiting.attempts) == 1


CONVERSATIONS: Mapping[str, Sequence[Message]] = {
    "system": [System("use s3cret")],
    "prompt": [User("log in with s3cret")],
    "a tool's text": [User("go"), ToolOutput("1", "env", "TOKEN=s3cret", False)],
    "a tool's result": [User("go"), ToolOutput("1", "env", "see below", False, {"meta": ["s3cret"]})],
    "a tool's error": [User("go"), ToolOutput("1", "env", "Error: bad token s3cret", True)],
    "the model's own text": [User("go"), Assistant(Reply("s3cret", None, (), "answer", None, None, None))],
}


@pytest.mark.parametrize("where", CONVERSATIONS)
async def test_a_secret_about_to_leave_stops_the_trial(where: str, tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, DONE)
    with pytest.raises(HarnessError, match="the value of TOKEN was about to be sent") as caught:
        await waiting.ask(*CONVERSATIONS[where])
    assert caught.value.cause == "secret"
    assert "s3cret" not in str(caught.value)
    assert waiting.attempts == []


async def test_a_secret_in_a_tools_description_or_schema_stops_the_trial(tmp_path: Path) -> None:
    for description, schema in (("needs s3cret", {}), (None, {"default": "s3cret"})):
        tool = ToolShown(shown_name="x", server="s", tool="x", description=description, input_schema=schema)
        with pytest.raises(HarnessError, match="TOKEN"):
            await Waiting(tmp_path, DONE).ask(tools=[tool])


async def test_a_secret_that_comes_late_in_a_conversation_is_found(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, DONE, DONE, DONE)
    conversation: list[Message] = [System("hello"), User("go")]
    await waiting.ask(*conversation)
    conversation.append(ToolOutput("1", "look", "nothing here", False))
    await waiting.ask(*conversation)
    conversation.append(ToolOutput("2", "env", "TOKEN=s3cret", False))
    with pytest.raises(HarnessError, match="TOKEN"):
        await waiting.ask(*conversation)
    assert len(waiting.attempts) == 2
