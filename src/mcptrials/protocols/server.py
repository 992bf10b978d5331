"""Server: how a server under test is started and spoken to, and what crosses that seam."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from mcptrials.events import CallStatus
from mcptrials.presentation import RawTool

_PLACEHOLDER = re.compile(r"\{(trial_dir|project_dir|python)\}")


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
