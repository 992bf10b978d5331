"""The four seams - Model, Host, Server, Grader - and the data that crosses them."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import Field, field_validator

from mcptrials.dialect import EXACT, Dialect
from mcptrials.events import CallAsked, CallStatus, Event, ToolShown, Usage
from mcptrials.frozen import Frozen, UserData
from mcptrials.overrides import NOTHING, Overrides
from mcptrials.presentation import RawTool, ToolFilter
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome, TrialKey

_PLACEHOLDER = re.compile(r"\{(trial_dir|project_dir|python)\}")

# --- Model ---------------------------------------------------------------------------------------------------------

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


# --- Server --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trial lives on disk."""

    trial_dir: Path
    project_dir: Path
    wire: Callable[[str], "WireLog"]
    """Opens the wire log of a server, by name."""
    inode: tuple[int, int] | None = None
    """Device and number of `trial_dir` as it was made, since a server can put another directory in its place."""

    def expand(self, text: str) -> str:
        """`text` with {trial_dir}, {project_dir} and {python} filled in; any other {name} stays literal."""
        if "{" not in text:
            return text
        known = {"trial_dir": str(self.trial_dir), "project_dir": str(self.project_dir), "python": sys.executable}
        return _PLACEHOLDER.sub(lambda match: known[match.group(1)], text)


class WireLog(Protocol):
    """Takes every frame as it passed, with its monotonic time."""

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ServerExit:
    """How a server ended; without a process there is no exit code."""

    exit_code: int | None
    how: Literal["closed", "terminated", "killed", "crashed", "abandoned"]
    ms: float
    stderr_bytes: int
    stderr_tail: str
    left_processes: int = 0
    """How many it had started and left running; they were killed."""
    limit: str | None = None
    """The limit of its sandbox that it ended of, as far as that can be told."""


class ServerChannel(Protocol):
    """Frames both ways to one running server; nothing is negotiated."""

    async def send(self, line: bytes) -> None: ...

    async def receive(self) -> bytes:
        """The next line of the server's output.

        Raises:
            EOFError: the server closed its output.
            TrialError: why nothing more will come, with its blame.
        """
        ...

    async def settle(self) -> int | None:
        """The exit code of a server whose output ended, which may take a moment; None when it lives on."""
        ...

    def exited(self) -> ServerExit | None:
        """How the server ended, once it has."""
        ...

    def stderr_tail(self) -> str | None:
        """None for a server that has none of its own."""
        ...


class Server(Protocol):
    """How to start the server under test, or where it is."""

    @property
    def name(self) -> str: ...

    def open(self, place: Place) -> AbstractAsyncContextManager[ServerChannel]: ...


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came back on the wire for one `tools/call`."""

    status: CallStatus
    ms: float
    result: Any = None
    error: Any = None


class ServerSession(Protocol):
    """A negotiated connection: raw tool list, raw results."""

    server: str
    name: str | None
    version: str | None
    protocol_version: str | None
    instructions: str | None
    tools: Sequence[RawTool]
    tools_hash: str
    problems: Sequence[str]
    """What is wrong with the tool list, in one line each; the tools concerned are not in `tools`."""
    startup_ms: float
    capabilities: Mapping[str, Any]
    """What the client declared: it may decide which tools there are."""
    list_changed: bool
    """Whether the server said that its tools are others than `tools`."""

    async def refresh(self, timeout_s: float) -> str | None:
        """Takes the tool list again; what stood in the way, if anything did: then `tools` are what they were."""
        ...

    async def call(self, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        """One call; what comes of it is a result, also a refusal, a silence or the server's end.

        Raises:
            ServerError: crash or contract_violation, when what the server writes cannot be read any further.
            HarnessError: auth or rate_limit, when it refuses us.
        """
        ...


# --- Host ----------------------------------------------------------------------------------------------------------


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


# --- Grader --------------------------------------------------------------------------------------------------------


class StateQuery(Frozen):
    """A question to the environment after the trial: free text for the project's readers, or a reader in place."""

    text: str
    read: dict[str, Any] | None = None
    of: Literal["trial", "reference"] = "trial"
    """Whose state is asked for: the trial's, or what the task's reference leaves."""

    @property
    def key(self) -> str:
        """Where the answer stands in an outcome."""
        return self.text if self.of == "trial" else f"reference: {self.text}"


@dataclass(frozen=True, slots=True)
class GradeInput:
    """All that grading may depend on; no server, no model, no clock."""

    task: Task
    outcome: Outcome
    transcript: Transcript
    trial_dir: Path | None = None
    """What the trial left on the disk; None where that is gone."""
    project_dir: Path | None = None
    work_dir: Path | None = None
    """Where graders that start processes keep their files, and by which these are found and ended."""


class Grader(Protocol):
    """Scores one side of a trial."""

    default_gate: ClassVar[bool]

    def needs(self, task: Task) -> tuple[StateQuery, ...]: ...

    def grade(self, given: GradeInput) -> "Judgement": ...


class AsideGrader(Protocol):
    """A grader that waits for a process of its own: the trials beside it go on meanwhile."""

    async def grade_aside(self, given: GradeInput) -> "Judgement": ...


class Printed(Protocol):
    """A grader that depends on more than its settings."""

    def fingerprint(self, project_dir: Path) -> str:
        """Of what else it depends on."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a grader says; `value` None is "could not decide"."""

    value: bool | float | None
    reason: str
    evidence: str | None = None
