"""What a run is asked to do, and who hears how it goes."""

from dataclasses import dataclass
from typing import Protocol

from mcptrials.protocols import Limits
from mcptrials.record import Record
from mcptrials.task import Split, Suite
from mcptrials.trial import Arm, Trial


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The command line's part of a run; None is "as the project says", or as the run that is continued began."""

    split: Split | None = None
    """None: train, or what a continued run began with."""
    only: str | None = None
    models: tuple[str, ...] = ()
    trials: int | None = None
    name: str | None = None
    resume: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to be run."""

    run_id: str
    suite: Suite
    arms: tuple[Arm, ...]
    trials: tuple[Trial, ...]
    owed: tuple[Trial, ...]
    limits: Limits
    concurrency: int
    scripted: bool
    """Whether a model is a script and no language model."""
    free: bool
    """Whether all models are local, scripted or on the loopback interface."""


class Listener(Protocol):
    """Hears of a run; none of it decides anything but `confirm`."""

    def notice(self, text: str) -> None:
        """A step of the preparation."""
        ...

    def warn(self, text: str) -> None:
        """What the preparation found that may spoil the results."""
        ...

    def progressed(self, what: str, done: int, total: int) -> None:
        """A long preparation, such as a download, in bytes."""
        ...

    def confirm(self, plan: Plan) -> bool:
        """Shows the plan; False ends the command before any spend."""
        ...

    def started(self, trial: Trial) -> None: ...

    def recorded(self, record: Record) -> None: ...

    def stopping(self, in_flight: int, *, cancelled: bool) -> None:
        """The user asked to stop: in-flight trials are finished, or cancelled."""
        ...


class Silent:
    """A listener that says yes and nothing else; warnings are kept."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def notice(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def progressed(self, what: str, done: int, total: int) -> None:
        pass

    def confirm(self, plan: Plan) -> bool:
        return True

    def started(self, trial: Trial) -> None:
        pass

    def recorded(self, record: Record) -> None:
        pass

    def stopping(self, in_flight: int, *, cancelled: bool) -> None:
        pass
