"""Lines: what an audit found, each ok, a warning (a should) or a failure (a must)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Section = Literal["files", "environment", "tasks", "servers", "providers", "models", "numbers"]
Level = Literal["ok", "warn", "fail"]
LEVELS: tuple[Level, ...] = ("ok", "warn", "fail")


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at."""

    section: Section
    level: Level
    subject: str
    what: str
    fix: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The same in numbers."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a task may not measure what it should, and what would help."""

    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Audit:
    """All of it."""

    lines: Sequence[Line]
    tools: Sequence[Mapping[str, Any]] = ()
    """One row per tool: what each provider makes of it."""
    tasks: Sequence[Mapping[str, Any]] = ()
    """One row per task: ok, warning or broken, with the reasons."""
    faults: Sequence[Mapping[str, Any]] = ()
    """One row per fault that was planted in the servers, with the tasks that notice it."""

    @property
    def passed(self) -> bool:
        return all(line.level != "fail" for line in self.lines)

    def document(self) -> dict[str, Any]:
        """Everything as JSON values."""
        count = Counter(line.level for line in self.lines)
        return {
            "passed": self.passed,
            "counts": {level: count[level] for level in LEVELS},
            "lines": [asdict(line) for line in self.lines],
            "tools": [dict(row) for row in self.tools],
            "tasks": [dict(row) for row in self.tasks],
            "faults": [dict(row) for row in self.faults],
        }
