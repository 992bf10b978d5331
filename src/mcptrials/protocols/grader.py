"""Grader: what scores one side of a trial, and what crosses that seam."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from mcptrials.frozen import Frozen
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome


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
