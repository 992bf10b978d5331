"""Record: everything that one trial leaves behind, as one JSON line with a schema version."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mcptrials.errors import Blame
from mcptrials.task import Purpose, Split
from mcptrials.trial import Framing, StateValue, Verdict

SCHEMA_VERSION = 1
NO_SUCH_TOOL = " (no such tool)"
"""What stands after the name of a tool that is none."""
MOST = (1 << 63) - 1
"""Of what is counted: a larger number is damage, and would be too large for a float."""


class GradeRecord(BaseModel):
    """A grade as recorded."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    name: str | None = None
    passed: bool | None
    value: bool | float | None = None
    gate: bool = True
    weight: float = 1
    reason: str | None = None
    evidence: str | None = None
    hash: str | None = None
    previous: dict[str, Any] | None = None
    """What was said before by a grader that, asked again, could not tell."""


class Verdicts(BaseModel):
    """What later graders say of one attempt: one JSON line of a `grades` file."""

    model_config = ConfigDict(frozen=True, extra="allow")

    task_id: str
    arm: str
    trial: int
    attempt: int
    passed: bool | None
    verdict: Verdict
    cause: str | None
    blame: Blame
    partial: float | None
    graders: tuple[GradeRecord, ...]

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.task_id, self.arm, self.trial, self.attempt


class Record(BaseModel):
    """One trial: inputs, outcome, grades, counts and times. None is "not measured".

    Unknown keys are kept, so that an older reader can read a later version.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    task_id: str
    trial: int
    model: str
    agent_harness: str
    server_version: str | dict[str, str | None] | None
    passed: bool | None
    graders: tuple[GradeRecord, ...]
    tool_calls: int = Field(ge=0, le=MOST)
    tool_errors: int = Field(ge=0, le=MOST)
    protocol_errors: int = Field(ge=0, le=MOST)
    input_tokens: int | None = Field(ge=0, le=MOST)
    output_tokens: int | None = Field(ge=0, le=MOST)
    duration_ms: float | None
    transcript: str

    schema_version: int = SCHEMA_VERSION
    run_id: str = ""
    arm: str = ""
    arm_label: str = ""
    variant: str = ""
    attempt: int = 1
    block: int = 1
    seed: int = 0
    split: Split = "train"
    tags: tuple[str, ...] = ()
    group: str | None = None
    purpose: Purpose = "capability"
    verdict: Verdict = "invalid"
    cause: str | None = None
    blame: Blame = "none"
    error: str | None = None
    """What went wrong, in one line, when something did."""
    answer: str | None = None
    framing: Framing | None = None
    partial: float | None = None
    """The weighted mean of the deciding grades, beside the verdict."""
    state: dict[str, StateValue] = {}
    stop: str | None = None
    tool_sequence: tuple[str, ...] = ()
    sent_calls: int = Field(default=0, ge=0, le=MOST)
    unknown_tools: int = Field(default=0, ge=0, le=MOST)
    """Calls by names that the model was not shown; those that no server got are not in `sent_calls`."""
    unknown_at: tuple[int, ...] = ()
    """Where in `tool_sequence` they are, from 0."""
    argument_errors: int = Field(default=0, ge=0, le=MOST)
    contract_violations: int = Field(default=0, ge=0, le=MOST)
    server_faults: tuple[str, ...] = ()
    cached_input_tokens: int | None = Field(default=None, ge=0, le=MOST)
    reasoning_tokens: int | None = Field(default=None, ge=0, le=MOST)
    cost_usd: float | None = None
    model_ms: float | None = None
    tool_ms: float | None = None
    wait_ms: float | None = None
    startup_ms: float | None = None
    shutdown_ms: float | None = None
    protocol_version: str | dict[str, str | None] | None = None
    server_name: str | dict[str, str | None] | None = None
    tools_hash: str | None = None
    suite_hash: str = ""
    task_hash: str = ""
    environment_hash: str = ""
    reply_hash: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    effective_model: str | None = None
    started_at: str = ""
    trial_dir: str | None = None
    """Where the trial's directory is kept, with `keep_trial_dirs`."""
    versions: dict[str, str] = Field(default_factory=dict)

    @property
    def scored(self) -> bool:
        return self.passed is not None

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.task_id, self.arm, self.trial, self.attempt

    @property
    def called(self) -> tuple[str, ...]:
        """`tool_sequence`, in which a name that the model was not shown is told from a tool that has it.

        A renamed tool is in it by the name that its server gives it, which is not its name for the model.
        """
        unknown = set(self.unknown_at)
        return tuple(f"{name}{NO_SUCH_TOOL}" if at in unknown else name for at, name in enumerate(self.tool_sequence))

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """What the model called that it was not shown, each name once."""
        return tuple(dict.fromkeys(self.tool_sequence[at] for at in self.unknown_at if at < len(self.tool_sequence)))

    def regraded(self, said: Verdicts) -> "Record":
        """The same attempt with the verdict of later graders."""
        names = ("passed", "verdict", "cause", "blame", "partial", "graders")
        return self.model_copy(update={name: getattr(said, name) for name in names})
