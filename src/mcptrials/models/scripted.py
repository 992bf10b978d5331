"""`scripted:FILE`: plays a script instead of asking a language model. For tests, demonstrations and ground truth.

Per task a script gives steps, and with `pass_rate` a second list for the trials that are to fail: which trial plays
which list is a seeded Bernoulli draw, so true success rates are known exactly.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import anyio
from pydantic import Field, ValidationError, field_validator, model_validator

from mcptrials.encoding import dump_text
from mcptrials.errors import ProviderError, ServerError, UsageError
from mcptrials.events import CallAsked, ToolShown, Usage
from mcptrials.frozen import Items, UserData, whole_number
from mcptrials.protocols import Endpoint, Message, Reply, ReplyStop
from mcptrials.source import alike, explain, load_source
from mcptrials.trial import TrialKey


class ScriptedCall(UserData):
    """A tool call; `raw_arguments` may be anything, also no JSON."""

    tool: str
    args: dict[str, Any] = {}
    raw_arguments: str | None = None


class ScriptedError(UserData):
    """A provider's failure, for one attempt."""

    status: int | None = None
    retry_after_s: float | None = Field(default=None, ge=0)
    cause: Literal["rate_limit", "auth", "quota", "http", "connection", "timeout", "context_overflow"] | None = None


class Step(UserData):
    """One reply, or one failed attempt."""

    text: str | None = None
    answer: str | None = None
    """Short for the text `<answer>...</answer>`."""
    calls: Items[ScriptedCall] = ()
    error: ScriptedError | None = None
    stop: Literal["answer", "length", "refused", "malformed_call"] = "answer"
    usage: Usage | None = None
    delay_ms: float = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _error_stands_alone(self) -> "Step":
        if self.error and (self.calls or self.text is not None or self.answer is not None):
            raise ValueError("a step with 'error' has no reply")
        return self


class TaskScript(UserData):
    """What is played for one task."""

    steps: Items[Step]
    otherwise: Items[Step] = ()
    pass_rate: float = Field(default=1.0, ge=0, le=1)

    @model_validator(mode="after")
    def _failure_is_scripted(self) -> "TaskScript":
        if self.pass_rate < 1 and not self.otherwise:
            raise ValueError("'pass_rate' below 1 needs 'otherwise': the steps of the trials that fail")
        return self


class Script(UserData):
    """A script file."""

    version: Literal[1] = 1
    seed: int = 0
    tasks: dict[str, TaskScript] = {}
    default: TaskScript | None = None

    _version_is_a_whole_number = field_validator("version", mode="before")(whole_number)

    @classmethod
    def load(cls, path: Path) -> "Script":
        """Raises:
        UsageError: with file, line and key.
        """
        source = load_source(path)
        try:
            return cls.model_validate(source.value)
        except ValidationError as exc:
            raise explain(source, exc) from exc

    def of_task(self, task_id: str) -> TaskScript:
        """What is played for a task.

        Raises:
            UsageError: it has none for the task.
        """
        script = self.tasks.get(task_id, self.default)
        if script is None:
            what = f"the script says nothing on task {task_id!r} and has no 'default'"
            close = alike(task_id, self.tasks)
            hint = f"did you mean it by {close!r}? else " if close else ""
            raise UsageError(what, hint=f"{hint}add the task to the script")
        return script

    def steps(self, trial: TrialKey) -> Sequence[Step]:
        """The steps that a trial plays."""
        script = self.of_task(trial.task_id)
        return script.steps if draw(self.seed, trial) < script.pass_rate else script.otherwise


def _found(name: str, project_dir: Path) -> Path:
    """A script beside the project file, else in the current directory."""
    try:
        return next((path for path in (project_dir / name, Path(name)) if path.exists()), Path(name))
    except OSError as exc:
        raise UsageError(f"cannot read the script: {exc.strerror}", where=name, hint="check its path") from exc


def draw(seed: int, trial: TrialKey) -> float:
    """A uniform number in [0, 1) that depends on the script's seed and the trial's, and on nothing else."""
    digest = hashlib.sha256(f"{seed}\0{trial.task_id}\0{trial.seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Scripted:
    """A model that plays a `Script`: the nth request of a trial gets the nth step."""

    scripted: ClassVar[bool] = True

    def __init__(self, name: str, *, project_dir: Path | None = None) -> None:
        self._script = Script.load(_found(name, project_dir or Path()))
        self._played: dict[TrialKey, int] = {}

    @property
    def endpoint(self) -> Endpoint | None:
        return None

    def check_tasks(self, task_ids: Iterable[str]) -> None:
        """Raises:
        UsageError: the script has nothing to play for one of the tasks.
        """
        for task_id in task_ids:
            self._script.of_task(task_id)

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        steps = self._script.steps(trial)
        position = self._played.get(trial, 0)
        self._played[trial] = position + 1
        step = steps[position] if position < len(steps) else Step()
        await anyio.sleep(step.delay_ms / 1000)
        if step.error:
            raise _failure(step.error)
        return _reply(step, position)

    async def aclose(self) -> None:
        self._played.clear()


def _reply(step: Step, position: int) -> Reply:
    parts = [step.text, f"<answer>{step.answer}</answer>" if step.answer is not None else None]
    text = "\n".join(part for part in parts if part is not None) or None
    calls = tuple(
        CallAsked(
            id=f"call_{position}_{number}",
            name=call.tool,
            raw_arguments=dump_text(call.args) if call.raw_arguments is None else call.raw_arguments,
        )
        for number, call in enumerate(step.calls)
    )
    stop: ReplyStop = "calls" if calls and step.stop == "answer" else step.stop
    return Reply(text, None, calls, stop, step.usage, "scripted", native=None, raw={"scripted_step": position})


def _failure(error: ScriptedError) -> Exception:
    if error.cause == "context_overflow":
        return ServerError("context_overflow", "scripted: the conversation no longer fits the model's window")
    by_status = {401: "auth", 402: "quota", 403: "auth", 429: "rate_limit"}
    cause = error.cause or by_status.get(error.status or 0, "http")
    retryable = cause in ("rate_limit", "connection", "timeout") or (error.status or 0) >= 500  # noqa: PLR2004 - HTTP
    message = f"scripted failure {error.status or cause}"
    return ProviderError(cause, message, status=error.status, retry_after_s=error.retry_after_s, retryable=retryable)
