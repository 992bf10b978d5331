"""Starts: how many trials start their servers at a time."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from mcptrials.events import Event, LimitReached, PromptGiven
from mcptrials.rollout.starts import Starts

pytestmark = pytest.mark.anyio

PROMPT = PromptGiven(at_ms=0, system="s", user="u", tools=())
OTHER = LimitReached(at_ms=0, limit="turns", value=1)


class Begun:
    """Trials that hold a place, and what ends them."""

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self.emit: dict[str, Callable[[Event], None]] = {}
        self._ends = {name: anyio.Event() for name in "abc"}

    async def trial(self, name: str) -> None:
        async with self._starts.begin(lambda _: None) as emit:
            self.emit[name] = emit
            await self._ends[name].wait()

    def end(self, name: str) -> None:
        self._ends[name].set()


@asynccontextmanager
async def three_trials_and_two_places() -> AsyncIterator[Begun]:
    begun = Begun(Starts(places=2))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(partial(begun.trial, name))
            await anyio.wait_all_tasks_blocked()
            yield begun
            for name in "abc":
                begun.end(name)


async def test_a_trial_waits_until_another_has_given_its_prompt() -> None:
    async with three_trials_and_two_places() as begun:
        assert set(begun.emit) == {"a", "b"}
        begun.emit["a"](OTHER)
        await anyio.wait_all_tasks_blocked()
        assert set(begun.emit) == {"a", "b"}
        begun.emit["a"](PROMPT)
        await anyio.wait_all_tasks_blocked()
        assert set(begun.emit) == {"a", "b", "c"}


async def test_a_trial_that_ends_without_a_prompt_gives_its_place_back_once() -> None:
    async with three_trials_and_two_places() as begun:
        begun.emit["a"](PROMPT)
        begun.end("a")
        begun.end("b")
        await anyio.wait_all_tasks_blocked()
        assert set(begun.emit) == {"a", "b", "c"}


async def test_every_event_is_passed_on() -> None:
    heard: list[Event] = []
    async with Starts().begin(heard.append) as emit:
        for event in (OTHER, PROMPT, PROMPT, OTHER):
            emit(event)
    assert heard == [OTHER, PROMPT, PROMPT, OTHER]
