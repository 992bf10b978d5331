"""Bench: everything that the trials of a run share, built once and handed to each."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

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


class SessionOpener(Protocol):
    """Binds the connect deadline; the era is pinned by server."""

    def __call__(self, connect_s: float) -> OpenSession: ...


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
    keep_trial_dirs: bool
    stop: Stop
    starts: Starts

    def tidy(self, place: Place) -> None:
        """Removes a trial's directory unless it is to be kept."""
        if not self.keep_trial_dirs:
            self.places.remove(place)
