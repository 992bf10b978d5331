"""Host: what puts a model in front of servers, and what crosses that seam."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import Field, field_validator

from mcptrials.dialect import EXACT, Dialect
from mcptrials.events import Event
from mcptrials.frozen import UserData
from mcptrials.overrides import NOTHING, Overrides
from mcptrials.presentation import ToolFilter
from mcptrials.protocols.model import Model
from mcptrials.protocols.server import Place, ServerChannel, ServerSession
from mcptrials.trial import TrialKey


class Limits(UserData):
    """Finite bounds of one trial."""

    turns: int = Field(default=20, ge=1)
    tool_calls: int = Field(default=40, ge=0)
    tokens: int = Field(default=200_000, ge=1)
    output_tokens_per_request: int = Field(default=4096, ge=1)
    connect_seconds: float = Field(default=30, gt=0)
    call_seconds: float = Field(default=60, gt=0)
    trial_seconds: float = Field(default=300, gt=0)
    cost_usd: float | None = Field(default=None, gt=0)

    @field_validator("cost_usd")
    @classmethod
    def _no_price_is_known(cls, value: float | None) -> float | None:
        if value is not None:
            raise ValueError("a limit on cost needs prices, which are not known yet; remove it and use 'tokens'")
        return value


class Clock(Protocol):
    """The trial's time: waits for a slot or for a provider's pause do not run it."""

    def now_ms(self) -> float:
        """Wall time since the trial began, waits included; the time base of events."""
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """Stops the trial's time limit for as long as the context lasts."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that a server made of its client, and what it got."""

    method: str
    params: Any
    policy: str
    """By which it was answered."""
    answer: Any


def unheard(*_: Any) -> None:
    """For what nobody wants to hear."""


@dataclass(frozen=True, slots=True)
class SessionHooks:
    """Who hears what a server does besides answering."""

    violation: Callable[[str, str], None]
    """(what, detail) of each breach of the protocol."""
    notification: Callable[[str, Any], None]
    """(method, params) of each notification."""
    asked: Callable[[Asked], None] = unheard
    """Each request for elicitation, sampling or roots."""


OpenSession = Callable[[str, ServerChannel, SessionHooks], AbstractAsyncContextManager[ServerSession]]
"""Negotiates on a channel, by server name."""


@dataclass(frozen=True, slots=True)
class HostContext:
    """What a host gets besides model and servers."""

    trial: TrialKey
    emit: Callable[[Event], None]
    limits: Limits
    clock: Clock
    place: Place
    open_session: OpenSession
    filters: Mapping[str, ToolFilter]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings of the arm's model."""
    dialect: Dialect = EXACT
    """What the arm's provider takes."""
    overrides: Overrides = NOTHING
    """What the model is told instead of what the servers say."""


@dataclass(frozen=True, slots=True)
class HostResult:
    """How a host's run ended: its final message, and `answer` or what stopped it."""

    message: str | None
    stop: str


class Host(Protocol):
    """The agent harness that puts a model in front of servers."""

    @property
    def version(self) -> str: ...

    async def run(
        self, prompt: str, model: Model, servers: Mapping[str, ServerChannel], context: HostContext
    ) -> HostResult: ...


@runtime_checkable
class TakesSessions(Protocol):
    """A host that talks to servers through `context.open_session` alone, so that these may be negotiated with ahead."""

    takes_sessions: ClassVar[Literal[True]]
