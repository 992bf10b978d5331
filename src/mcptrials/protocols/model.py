"""Model: what answers a conversation with text or calls, and what crosses that seam."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from mcptrials.events import CallAsked, ToolShown, Usage
from mcptrials.trial import TrialKey

ReplyStop = Literal["answer", "calls", "length", "refused", "malformed_call", "paused", "context_overflow"]
"""`paused`: the provider has more to say once it gets its own words back; no answer and no fault."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered to one request."""

    text: str | None
    reasoning: str | None
    calls: tuple[CallAsked, ...]
    stop: ReplyStop
    usage: Usage | None
    """None when the provider does not report it."""
    model: str | None
    """The model that the provider says it used."""
    native: Any
    """The provider's own message, replayed unchanged in later requests."""
    raw: Any = None
    """The provider's whole JSON reply."""
    call_source: Literal["native", "lenient"] = "native"
    params: Mapping[str, Any] = field(default_factory=dict)
    """What was sent besides messages and tools."""
    dropped: tuple[str, ...] = ()
    """Parameters that were asked for, but not sent, since the model takes them not."""
    native_images: int = 0
    """How many images of tool results the request held as images; all others were shown as text."""


@dataclass(frozen=True, slots=True)
class System:
    text: str


@dataclass(frozen=True, slots=True)
class User:
    text: str


@dataclass(frozen=True, slots=True)
class Assistant:
    reply: Reply


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The answer to one call."""

    call_id: str
    name: str
    text: str
    is_error: bool
    result: Any = None
    """The raw result, for providers with native content blocks."""


Message = System | User | Assistant | ToolOutput


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a real host can reach the model by itself."""

    base_url: str
    model: str
    api_key: str | None


class Model(Protocol):
    """A language model, or something that stands in for one."""

    @property
    def scripted(self) -> bool:
        """True for stand-ins that are not language models; every screen says so."""
        ...

    @property
    def endpoint(self) -> Endpoint | None: ...

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        """One request, one attempt.

        Args:
            settings: `max_tokens` (the limit on the reply), and what the project file sets.

        Raises:
            ProviderError: with cause, HTTP status and whether a retry may help.
            ServerError: `context_overflow`, when what the server sent no longer fits the model's window.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class KnowsTasks(Protocol):
    """A model that can play some tasks only."""

    def check_tasks(self, task_ids: Iterable[str]) -> None: ...


@runtime_checkable
class Startable(Protocol):
    """A model that has to be got ready before its first request, which may take minutes."""

    async def start(self) -> None: ...
