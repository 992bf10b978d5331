"""Task and Suite: what is asked and how it is graded, knowing nothing of models."""

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from mcptrials.encoding import canonical_hash
from mcptrials.frozen import Frozen, Items, UserData

Expects = Literal["act", "abstain", "refuse", "not_found"]
Split = Literal["train", "held_out"]
Purpose = Literal["capability", "regression"]

MAX_TRIALS = 10_000
"""Of one task by one arm."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SPLITS = {"test": "held_out", "held-out": "held_out"}


class GraderSpec(UserData):
    """One grader of a task: its type, and the settings of that type."""

    type: str
    name: str | None = None
    gate: bool | None = None
    """Whether it decides; None is the default of its type."""
    weight: float = Field(default=1, gt=0)
    settings: dict[str, Any] = {}

    @property
    def label(self) -> str:
        return self.name or self.type

    @property
    def hash(self) -> str:
        """What grading depends on; the name and the weight do not belong to it."""
        return canonical_hash([self.type, self.gate, self.settings])[:16]


class ReferenceCall(UserData):
    """One call of a task's reference solution."""

    server: str | None = None
    tool: str
    args: dict[str, Any] = {}


class Reference(UserData):
    """A solution that must pass all graders."""

    answer: str | None = None
    calls: Items[ReferenceCall] = ()


class Task(UserData):
    """A user's request, with its success criteria."""

    id: str
    prompt: str = Field(min_length=1)
    graders: Items[GraderSpec] = Field(min_length=1)
    reference: Reference | None = None
    expects: Expects = "act"
    expected_tools: Items[str] = ()
    purpose: Purpose = "capability"
    split: Split = "train"
    tags: Items[str] = ()
    group: str | None = None
    source: str | None = None
    notes: str | None = None
    combine: Literal["all", "any"] = "all"
    environment: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    trials: int | None = Field(default=None, ge=1, le=MAX_TRIALS)
    noop_should_pass: bool = False
    draft: bool = False
    """Loaded and checked, but never run: somebody must still complete it."""

    @field_validator("id")
    @classmethod
    def _id_is_a_safe_name(cls, value: str) -> str:
        if not _ID.fullmatch(value):
            raise ValueError("an id is 1 to 100 of A-Z a-z 0-9 . _ - and begins with a letter or digit")
        return value

    @field_validator("prompt")
    @classmethod
    def _prompt_is_not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("the prompt is empty")
        return value

    @field_validator("split", mode="before")
    @classmethod
    def _split_has_other_names(cls, value: Any) -> Any:
        return _SPLITS.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _grader_is_another_name(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "grader" not in data:
            return data
        if "graders" in data:
            raise ValueError("both 'grader' and 'graders' are given; keep one")
        graders = data["grader"]
        rest = {key: value for key, value in data.items() if key != "grader"}
        return rest | {"graders": graders if isinstance(graders, list | tuple) else [graders]}

    @property
    def hash(self) -> str:
        """Equal for tasks whose results may be paired: relabelling a task keeps it."""
        graders = [[spec.type, spec.gate, spec.settings] for spec in self.graders]
        basis: list[Any] = [self.prompt, graders, self.expects, self.combine, self.environment, self.limits]
        if any(spec.type == "state_equals_reference" for spec in self.graders):
            basis.append(self.reference.model_dump() if self.reference else None)  # what is expected
        return canonical_hash(basis)


class Suite(Frozen):
    """Tasks in the order of their files."""

    tasks: tuple[Task, ...]

    @property
    def hash(self) -> str:
        """Of the ids and task hashes, whatever their order."""
        return canonical_hash(sorted([task.id, task.hash] for task in self.tasks))

    def select(self, ids: Sequence[str]) -> "Suite":
        """The tasks with these ids, in suite order."""
        wanted = set(ids)
        return Suite(tasks=tuple(task for task in self.tasks if task.id in wanted))
