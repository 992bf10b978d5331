"""Bench: everything that the trials of a run share, built once and handed to each."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mcptrials.dialect import Dialect
from mcptrials.environment import Environment, TrialPlaces
from mcptrials.errors import HarnessError
from mcptrials.events import Event
from mcptrials.models.patient import Pause
from mcptrials.overrides import NOTHING, Overrides
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
    StateQuery,
    WireLog,
)
from mcptrials.redaction import Redactor
from mcptrials.rollout.starts import Starts
from mcptrials.rollout.stop import Stop
from mcptrials.servers.spoken import Spoken
from mcptrials.task import GraderSpec, Split, Task
from mcptrials.trial import Arm, StateValue, Trial


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
    queries: tuple[StateQuery, ...] = ()
    """What the graders ask for of the state, each once."""
    reference_state: Mapping[str, StateValue] = field(default_factory=dict)
    """What the task's reference leaves, by the keys of the queries for it."""

    async def make_clean(self, place: Place) -> None:
        """Puts the world of a trial in its place.

        Raises:
            HarnessError: reset, when it cannot be, or is not the pristine one.
        """
        await self.environment.prepare(place)
        if await self.environment.state_hash(place) != self.pristine_hash:
            raise HarnessError("reset", "after the reset the state is not the pristine one: its hash differs")


@dataclass(frozen=True, slots=True)
class Promised:
    """What a server said of itself in the check before the run; a trial that meets another server says so."""

    version: str | None
    tools_hash: str


class TrialFiles(Protocol):
    """Where the events and frames of one trial go."""

    @property
    def transcript(self) -> str: ...

    def write(self, event: Event) -> None: ...

    def wire(self, server: str) -> WireLog: ...

    def close(self) -> None: ...


class TrialWriter(Protocol):
    """Opens the files of each trial."""

    def open_trial(self, trial: Trial) -> TrialFiles: ...


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
    overrides: Overrides = NOTHING
    ahead: frozenset[str] = frozenset()
    """The servers that are started before the trial that will use them, and closed after its slot is free."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The run's parts."""

    run_id: str
    split: Split
    suite_hash: str
    tasks: Mapping[str, TaskBench]
    arms: Mapping[str, ArmBench]
    places: TrialPlaces
    writer: TrialWriter
    redactor: Redactor
    versions: Mapping[str, str]
    stop: Stop
    starts: Starts
