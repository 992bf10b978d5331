"""What happens in a trial, as a tagged union of facts on one monotonic clock.

`at_ms` is the time since the trial began; `ms` is a duration. What was not measured is None.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from mcptrials.errors import Blame
from mcptrials.frozen import Frozen

CallStatus = Literal[
    "ok",
    "tool_error",
    "protocol_error",
    "timeout",
    "transport_lost",
    "contract_violation",
    "input_required",
    "not_sent",
]


class Usage(Frozen):
    """Tokens of one reply as the provider counts them; None is "not reported"."""

    input_tokens: int | None = None
    """Prompt tokens, cached ones included."""
    output_tokens: int | None = None
    """Completion tokens, reasoning included."""
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


class CallAsked(Frozen):
    """A tool call as the model asked for it."""

    id: str
    name: str
    raw_arguments: str
    """The argument text exactly as the model wrote it; it may be no JSON."""


class ToolShown(Frozen):
    """A tool as the model sees it, and where its calls go."""

    shown_name: str
    server: str
    tool: str
    description: str | None
    input_schema: Any


class PromptGiven(Frozen):
    """What the model starts with."""

    kind: Literal["prompt"] = "prompt"
    at_ms: float
    system: str | None
    user: str
    tools: tuple[ToolShown, ...]


class ServerStarted(Frozen):
    """A server answered the handshake and listed its tools."""

    kind: Literal["server_started"] = "server_started"
    at_ms: float
    ms: float
    server: str
    name: str | None
    version: str | None
    protocol_version: str | None
    instructions: str | None
    tools_hash: str
    tool_count: int
    capabilities: dict[str, Any] = {}
    """What the client declared that it can do for the server."""


class ToolsListed(Frozen):
    """A server's tool list was taken again, since the server said that it changed."""

    kind: Literal["tools_listed"] = "tools_listed"
    at_ms: float
    ms: float
    server: str
    tools_hash: str
    tool_count: int
    tools: tuple[ToolShown, ...]
    """All that the model sees from now on, of every server."""
    error: str | None = None
    """Why it did not come; then the tools are those from before."""


class ServerAsked(Frozen):
    """The server asked its client for elicitation, sampling or roots, and got an answer."""

    kind: Literal["server_asked"] = "server_asked"
    at_ms: float
    server: str
    method: str
    params: Any
    policy: str
    """By which it was answered: decline, cancel, accept-defaults, scripted, none or trial_dir."""
    answer: Any


class ServerExited(Frozen):
    """A server is gone, or our connection to it."""

    kind: Literal["server_exited"] = "server_exited"
    at_ms: float
    ms: float
    server: str
    exit_code: int | None
    how: str
    """closed (it ended by itself when its input did), terminated, killed, crashed, or abandoned (its thread hangs)."""
    stderr_bytes: int
    stderr_tail: str
    left_processes: int = 0
    """How many it had started and left running; they were killed."""
    limit: str | None = None
    """The limit of its sandbox that it ended of, as far as that can be told."""


class ServerLog(Frozen):
    """A notification that the server sent by itself."""

    kind: Literal["server_log"] = "server_log"
    at_ms: float
    server: str
    method: str
    params: Any


class ContractViolation(Frozen):
    """The server broke the protocol or its own schema."""

    kind: Literal["contract_violation"] = "contract_violation"
    at_ms: float
    server: str
    what: str
    detail: str


class PresentationChange(Frozen):
    """A named policy changed what the model sees."""

    kind: Literal["presentation_change"] = "presentation_change"
    at_ms: float
    policy: str
    subject: str
    before: Any = None
    after: Any = None
    rule: str | None = None
    """Which of the policy's rules."""
    path: str | None = None
    """Where in the subject, as a JSON path."""


class ModelRequest(Frozen):
    """A request goes to the model; its messages are the events before it."""

    kind: Literal["model_request"] = "model_request"
    at_ms: float
    turn: int
    params: dict[str, Any]


class ModelAttempt(Frozen):
    """One attempt at a model request; failed ones are followed by a wait."""

    kind: Literal["model_attempt"] = "model_attempt"
    at_ms: float
    ms: float
    attempt: int
    status: int | None
    error: str | None
    wait_ms: float


class ModelReply(Frozen):
    """What the model answered."""

    kind: Literal["model_reply"] = "model_reply"
    at_ms: float
    ms: float
    turn: int
    text: str | None
    reasoning: str | None
    calls: tuple[CallAsked, ...]
    call_source: Literal["native", "lenient"]
    stop: str
    usage: Usage | None
    model: str | None
    native: Any
    """The provider's own JSON, unchanged."""
    params: dict[str, Any] = {}
    """What was sent besides messages and tools."""
    dropped: tuple[str, ...] = ()
    """Parameters that the model turned out not to take, and that were not sent."""
    native_images: int = 0
    """How many images of tool results the request held as images, not as the text that is recorded as shown."""


class ToolCalled(Frozen):
    """A tool call is on its way to a server, or is refused before."""

    kind: Literal["tool_call"] = "tool_call"
    at_ms: float
    call_id: str
    shown_name: str
    server: str | None
    tool: str
    arguments: Any
    raw_arguments: str
    unknown_tool: bool
    argument_error: str | None
    """Why the arguments do not fit the tool's schema, by our own check; they are sent all the same."""
    sent: Any = None
    """What the server got, where that is not `arguments`: with what the project injects."""


class ToolAnswered(Frozen):
    """The answer to a tool call: the server's, and what the model was shown of it."""

    kind: Literal["tool_result"] = "tool_result"
    at_ms: float
    ms: float
    call_id: str
    server: str | None
    tool: str
    status: CallStatus
    result: Any
    """The raw result from the wire, or None."""
    error: Any
    """The raw JSON-RPC error from the wire, or None."""
    shown: str


class LimitReached(Frozen):
    """A limit ended the trial."""

    kind: Literal["limit"] = "limit"
    at_ms: float
    limit: str
    value: float


class FinalAnswer(Frozen):
    """The answer taken from the final message."""

    kind: Literal["answer"] = "answer"
    at_ms: float
    answer: str | None
    framing: Literal["tagged", "untagged", "hedged", "missing"]


class StateRead(Frozen):
    """A state reader looked at the environment after the trial."""

    kind: Literal["state_read"] = "state_read"
    at_ms: float
    ms: float
    query: str
    value: Any
    error: str | None


class Failure(Frozen):
    """A fault that ended the trial."""

    kind: Literal["error"] = "error"
    at_ms: float
    blame: Blame
    cause: str
    message: str
    traceback: str | None = None


Event = Annotated[
    PromptGiven
    | ServerStarted
    | ServerExited
    | ServerAsked
    | ToolsListed
    | ServerLog
    | ContractViolation
    | PresentationChange
    | ModelRequest
    | ModelAttempt
    | ModelReply
    | ToolCalled
    | ToolAnswered
    | LimitReached
    | FinalAnswer
    | StateRead
    | Failure,
    Field(discriminator="kind"),
]

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(value: Any) -> Event:
    """An event from its JSON value; keys of later versions are ignored."""
    return _EVENT.validate_python(value, strict=False, extra="ignore")
