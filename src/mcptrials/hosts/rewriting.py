"""Rewriting: a session that stands before a server's and plants one fault in its answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcptrials.encoding import canonical_hash
from mcptrials.presentation import RawTool
from mcptrials.protocols import CallResult, ServerSession

Asked = tuple[str, Any]
"""A tool and its arguments."""


class Passing:
    """A session that passes everything on; what plants a fault overrides `call`."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self.server, self.name, self.version = session.server, session.name, session.version
        self.protocol_version, self.instructions = session.protocol_version, session.instructions
        self.tools: Sequence[RawTool] = session.tools
        self.tools_hash, self.problems, self.startup_ms = session.tools_hash, session.problems, session.startup_ms
        self.capabilities = session.capabilities
        self.list_changed = False  # references are played against the list that they began with

    async def refresh(self, timeout_s: float) -> str | None:
        return await self._session.refresh(timeout_s)

    async def call(self, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        return await self._session.call(tool, arguments, timeout_s)


class Lossy(Passing):
    """Answers the calls of one tool as they were answered before, and does nothing."""

    def __init__(
        self, session: ServerSession, tool: str, answers: Mapping[str, Any], hidden: frozenset[str] = frozenset()
    ) -> None:
        """Args:
        answers: by the hash of the arguments without the `hidden` ones.
        """
        super().__init__(session)
        self._tool, self._answers, self._hidden = tool, answers, hidden

    async def call(self, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        asked = (
            {name: each for name, each in arguments.items() if name not in self._hidden} if self._hidden else arguments
        )
        answer = self._answers.get(canonical_hash(asked)) if tool == self._tool else None
        return CallResult("ok", 0.0, answer) if answer is not None else await super().call(tool, arguments, timeout_s)


class Straying(Passing):
    """Does what the calls of one tool ask for somewhere else."""

    def __init__(self, session: ServerSession, tool: str, elsewhere: Callable[[Any], Any]) -> None:
        super().__init__(session)
        self._tool, self._elsewhere = tool, elsewhere

    async def call(self, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        arguments = self._elsewhere(arguments) if tool == self._tool else arguments
        return await super().call(tool, arguments, timeout_s)


class Stale(Passing):
    """Answers the calls of one tool as they would have been answered at the beginning."""

    def __init__(self, session: ServerSession, tool: str, later: Sequence[Any]) -> None:
        super().__init__(session)
        self._tool, self._later = tool, later
        self._before: dict[str, CallResult] | None = None

    async def call(self, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        if self._before is None:
            self._before = {}
            for each in self._later:
                self._before[canonical_hash(each)] = await super().call(self._tool, each, timeout_s)
        before = self._before.get(canonical_hash(arguments)) if tool == self._tool else None
        return before or await super().call(tool, arguments, timeout_s)


@dataclass(frozen=True, slots=True)
class Planted:
    """Plants a fault in the sessions of one server; the others stay as they are."""

    server: str
    plant: Callable[[ServerSession], ServerSession]

    def __call__(self, session: ServerSession) -> ServerSession:
        return self.plant(session) if session.server == self.server else session
