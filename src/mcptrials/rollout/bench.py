"""Bench: everything that the trials of a run share, built once and handed to each."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio import to_thread

from mcptrials.dialect import Dialect
from mcptrials.environment import Environment, TrialPlaces
from mcptrials.models.patient import Pause
from mcptrials.presentation import ToolFilter
from mcptrials.protocols import (
    Grader,
    Host,
    Limits,
    Model,
    OpenSession,
    Place,
    Server,
    ServerChannel,
    ServerSession,
    WireLog,
)
from mcptrials.redaction import Redactor
from mcptrials.rollout.starts import Starts
from mcptrials.rollout.stop import Stop
from mcptrials.servers.spoken import Spoken
from mcptrials.store import RunWriter
from mcptrials.task import GraderSpec, Split, Task
from mcptrials.trial import Arm


@dataclass(frozen=True, slots=True)
class TaskBench:
    """A task with what its trials need."""

    task: Task
    environment: Environment
    environment_hash: str
    pristine_hash: str | None
    """State hash that every trial must start from."""
    limits: Limits
    graders: tuple[tuple[GraderSpec, Grader], ...]
    filters: Mapping[str, Mapping[str, ToolFilter]]
    """Which tools are shown: by variant, then by server."""


@dataclass(frozen=True, slots=True)
class Promised:
    """What a server said of itself in the check before the run; a trial that meets another server says so."""

    version: str | None
    tools_hash: str


class SessionOpener(Protocol):
    """Binds the connect deadline and the trial's directory; the era is pinned by server."""

    def __call__(self, connect_s: float, trial_dir: Path) -> OpenSession: ...


class SessionContinuer(Protocol):
    """Takes up a connection where its host left it, without negotiating again."""

    def __call__(
        self, server: str, channel: ServerChannel, spoken: Spoken
    ) -> AbstractAsyncContextManager[ServerSession]: ...


@dataclass(frozen=True, slots=True)
class ArmBench:
    """An arm with its live parts."""

    arm: Arm
    host: Host
    model: Model
    pause: Pause
    servers: Mapping[str, Server]
    open_session: SessionOpener
    continue_session: SessionContinuer
    settings: Mapping[str, Any]
    dialect: Dialect
    promised: Mapping[str, Promised] = field(default_factory=dict)
    """By server."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The run's parts."""

    run_id: str
    split: Split
    suite_hash: str
    tasks: Mapping[str, TaskBench]
    arms: Mapping[str, ArmBench]
    places: TrialPlaces
    writer: RunWriter
    redactor: Redactor
    versions: Mapping[str, str]
    stop: Stop
    starts: Starts

    @asynccontextmanager
    async def place(
        self, name: str, wire: Callable[[str], WireLog], kept: Callable[[Path | None], None]
    ) -> AsyncIterator[Place]:
        """A trial's directory, removed at the end unless it is to be kept.

        Args:
            name: of the trial; its directory has it only when the trial is over.
            kept: hears where it is kept.

        Raises:
            HarnessError: io, when it cannot be made.
        """
        place = self.places.make(wire)
        try:
            yield place
        finally:
            with anyio.CancelScope(shield=True):
                kept(await to_thread.run_sync(self.places.leave, place, name))
