"""Patient: a model as one trial sees it, with the provider's failures waited out and every attempt recorded.

Requests are retried, trials never. Waits stop the trial's clock, and one trial's Retry-After holds back every request
to the same model.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from anyio import to_thread

from mcptrials.encoding import LONG, dump_text
from mcptrials.errors import HarnessError, ProviderError, ServerError
from mcptrials.events import Event, ModelAttempt, ToolShown
from mcptrials.protocols import Assistant, Clock, Endpoint, Message, Model, Reply, ToolOutput
from mcptrials.trial import TrialKey


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a provider is waited for."""

    attempts: int = 6
    """Of requests that fail for other reasons than a rate limit."""
    total_wait_s: float = 600
    """Per request; rate limits are waited out for as long as this."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    spread_s: float = 1.0
    """Over how long the trials that one pause held back begin again."""


class Pause:
    """A provider's wish to be left alone until a time, shared by all trials of a model."""

    def __init__(self) -> None:
        self._until_s = 0.0

    def extend(self, seconds: float) -> None:
        self._until_s = max(self._until_s, time.monotonic() + seconds)

    async def over(self) -> None:
        while (left := self._until_s - time.monotonic()) > 0:  # noqa: ASYNC110 - the end moves meanwhile
            await anyio.sleep(left)

    @property
    def is_over(self) -> bool:
        return self._until_s <= time.monotonic()


class Patient:
    """Wraps a model for one trial."""

    def __init__(
        self,
        model: Model,
        pause: Pause,
        clock: Clock,
        emit: Callable[[Event], None],
        find_secret: Callable[[str], str | None],
        policy: RetryPolicy | None = None,
    ) -> None:
        self._model, self._pause, self._clock, self._emit = model, pause, clock, emit
        self._find_secret, self._policy = find_secret, policy or RetryPolicy()
        self._checked = 0

    @property
    def scripted(self) -> bool:
        return self._model.scripted

    @property
    def endpoint(self) -> Endpoint | None:
        return self._model.endpoint

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        if any(len(message.text) > LONG for message in messages[self._checked :] if isinstance(message, ToolOutput)):
            await to_thread.run_sync(self._refuse_secrets, messages, tools)
        else:
            self._refuse_secrets(messages, tools)
        # Trials of several arms may share a seed, and a model.
        rng = random.Random(f"{trial.seed} {trial.arm}")
        waits = _Waits(self._policy, rng)
        while True:
            await self._sleep_until_welcome(rng)
            began = self._clock.now_ms()
            try:
                reply = await self._model.request(messages, tools, settings, trial)
            except (ProviderError, ServerError) as exc:
                wait_s = waits.after(exc)
                self._record(began, waits.attempt, exc, wait_s or 0.0)
                if wait_s is None:
                    raise
                rate_limited = exc.cause == "rate_limit"
            else:
                self._record(began, waits.attempt + 1, None, 0.0)
                return reply
            if rate_limited:
                self._pause.extend(wait_s)
            else:
                with self._clock.waiting():
                    await anyio.sleep(wait_s)

    async def _sleep_until_welcome(self, rng: random.Random) -> None:
        """Waits out the pause, and a moment more: all trials at once would only bring the next one about."""
        if self._pause.is_over:
            return
        with self._clock.waiting():
            while not self._pause.is_over:
                await self._pause.over()
                await anyio.sleep(rng.uniform(0, self._policy.spread_s))

    def _record(self, began: float, attempt: int, failure: Exception | None, wait_s: float) -> None:
        status = failure.status if isinstance(failure, ProviderError) else None if failure else 200
        self._emit(
            ModelAttempt(
                at_ms=began,
                ms=self._clock.now_ms() - began,
                attempt=attempt,
                status=status,
                error=str(failure) if failure else None,
                wait_ms=wait_s * 1000,
            )
        )

    def _refuse_secrets(self, messages: Sequence[Message], tools: Sequence[ToolShown]) -> None:
        """A secret that a server let slip must not travel on to a provider (invariant 6)."""
        texts = [_text(message) for message in messages[self._checked :]]
        if self._checked == 0:
            texts += [dump_text([tool.tool, tool.shown_name, tool.description, tool.input_schema]) for tool in tools]
        self._checked = len(messages)
        for text in texts:
            if name := self._find_secret(text):
                raise HarnessError("secret", f"the value of {name} was about to be sent to the model's provider")

    async def aclose(self) -> None:
        """The wrapped model is shared and outlives the trial."""


def _text(message: Message) -> str:
    if isinstance(message, Assistant):
        return message.reply.text or ""
    return f"{message.text}\n{dump_text(message.result)}" if isinstance(message, ToolOutput) else message.text


class _Waits:
    """How long to wait after each failure of one request; None is "give up"."""

    def __init__(self, policy: RetryPolicy, rng: random.Random) -> None:
        self._policy, self._rng = policy, rng
        self.attempt = 0
        self._waited_s = 0.0

    def after(self, failure: ProviderError | ServerError) -> float | None:
        self.attempt += 1
        if not isinstance(failure, ProviderError) or not failure.retryable:
            return None
        if failure.cause != "rate_limit" and self.attempt >= self._policy.attempts:
            return None
        # A provider that asks for no time at all, again and again, must not be asked without end.
        ceiling = min(self._policy.first_wait_s * 2 ** (self.attempt - 1), self._policy.longest_wait_s)
        wait_s = max(failure.retry_after_s or 0.0, ceiling * self._rng.uniform(0.5, 1.0))
        self._waited_s += wait_s
        return wait_s if self._waited_s <= self._policy.total_wait_s else None
