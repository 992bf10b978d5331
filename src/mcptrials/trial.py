"""Arm, Trial, Outcome and Grade, and the verdict that follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcptrials.encoding import canonical_hash
from mcptrials.errors import Blame
from mcptrials.frozen import Frozen

Verdict = Literal["passed", "failed", "invalid", "pending"]
Framing = Literal["tagged", "untagged", "hedged", "missing"]
"""How the answer stood in the final message."""


class Arm(Frozen):
    """One (variant, host, model, settings): the unit that is compared."""

    variant: str
    host: str
    model: str
    model_settings: dict[str, Any] = {}
    """What else decides the model's behaviour: endpoint and sampling settings; no secrets."""
    host_settings: dict[str, Any] = {}
    overrides: str | None = None
    """Hash of what the model is told instead of what the servers say."""

    @property
    def id(self) -> str:
        """8 hex digits of its canonical hash."""
        without = {"overrides"} if self.overrides is None else set()
        return canonical_hash(self.model_dump(mode="json", exclude=without))[:8]

    @property
    def label(self) -> str:
        return f"{self.variant} · {self.host} · {self.model}"


class TrialKey(Frozen):
    """A trial's identity as a model sees it."""

    task_id: str
    arm: str
    number: int
    attempt: int
    seed: int


class Trial(Frozen):
    """One attempt at a task by an arm, identified before it happens."""

    task_id: str
    arm: str
    number: int
    """1-based."""
    seed: int
    block: int
    attempt: int = 1
    """1 + the number of invalid attempts before."""

    @property
    def name(self) -> str:
        """Unique in a run, and a safe file name."""
        return f"{self.task_id}-{self.number}-{self.arm}-{self.attempt}"

    @property
    def key(self) -> TrialKey:
        return TrialKey(task_id=self.task_id, arm=self.arm, number=self.number, attempt=self.attempt, seed=self.seed)


class StateValue(Frozen):
    """What a state reader found."""

    value: Any = None
    error: str | None = None


class Outcome(Frozen):
    """What is left when a trial ends."""

    answer: str | None
    framing: Framing
    state: dict[str, StateValue] = {}
    stop: str
    """answer, or what ended the trial instead: limit:turns, refused, malformed_call, length, crash ..."""


class Grade(Frozen):
    """One grader's judgement; `value` None is "not graded", never 0."""

    type: str
    name: str
    value: bool | float | None
    gate: bool = True
    weight: float = 1
    reason: str
    evidence: str | None = None
    hash: str

    @property
    def passed(self) -> bool | None:
        return None if self.value is None else self.value is True or (self.value is not False and self.value >= 1)


def partial_credit(grades: Sequence[Grade]) -> float | None:
    """The weighted mean of what the deciding graders say, in [0, 1]; one that could not decide makes it unknown.

    It stands beside the verdict and never makes one: half an answer is no pass.
    """
    deciding = [grade for grade in grades if grade.gate]
    if not deciding or any(grade.value is None for grade in deciding):
        return None
    earned = sum(grade.weight * min(max(float(grade.value or 0), 0.0), 1.0) for grade in deciding)
    return earned / sum(grade.weight for grade in deciding)


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with the side that is to blame and what caused it."""

    verdict: Verdict
    blame: Blame
    cause: str | None

    @property
    def passed(self) -> bool | None:
        return {"passed": True, "failed": False}.get(self.verdict)


AGENT_STOPS = ("limit:turns", "limit:tool_calls", "limit:tokens", "refused", "malformed_call")
SLOW_SERVER_SHARE = 0.5
SERVER_STOPS = ("crash", "contract_violation", "context_overflow")

_CAUSES: Mapping[str, str] = {
    "call_order": "wrong_call_order",
    "forbidden_tools": "called_forbidden_tool",
    "max_calls": "too_many_calls",
    "no_tool_call": "called_when_it_should_not",
    "only_changes": "wrong_state",
    "required_tools": "tool_not_called",
    "state_check": "wrong_state",
    "state_equals_reference": "wrong_state",
}


def decide(
    outcome: Outcome,
    grades: Sequence[Grade],
    combine: Literal["all", "any"],
    *,
    last_call_timed_out: bool = False,
    tool_time_share: float = 0.0,
    model_time_share: float = 1.0,
) -> Decision:
    """The verdict of a trial that ran to its end, by the first rule that matches.

    What *ended* the trial is its cause; otherwise the deciding grades are.

    Args:
        tool_time_share: share of the trial's time limit that was spent in tool calls.
        model_time_share: likewise in waiting for the model; the rest is our own.
    """
    if outcome.stop == "limit:time":
        return _out_of_time(tool_time_share, model_time_share)
    if outcome.stop in SERVER_STOPS:
        return Decision("failed", "server", outcome.stop)
    if outcome.stop in AGENT_STOPS:
        return Decision("failed", "agent", outcome.stop)
    deciding = [grade for grade in grades if grade.gate]
    if combine == "any" and any(grade.passed for grade in deciding):
        return Decision("passed", "none", None)
    undecided = [grade for grade in deciding if grade.value is None]
    if undecided:
        human = all(grade.type == "human" for grade in undecided)
        return Decision("pending", "none", "human") if human else Decision("invalid", "grader", "grader_error")
    failed = [grade for grade in deciding if not grade.passed]
    if not failed:
        return Decision("passed", "none", None)
    if last_call_timed_out:
        return Decision("failed", "server", "call_timeout")
    return Decision("failed", "agent", _cause(failed[0], outcome))


def _out_of_time(tools: float, model: float) -> Decision:
    """By shares of the time limit: what took most of it."""
    if tools >= SLOW_SERVER_SHARE:
        return Decision("failed", "server", "limit:time")
    return Decision("invalid", "provider" if model >= 1 - tools - model else "harness", "limit:time")


def _cause(grade: Grade, outcome: Outcome) -> str:
    if grade.type in _CAUSES:
        return _CAUSES[grade.type]
    if outcome.answer is None or grade.reason == "no_answer":
        return "no_answer"
    return "wrong_answer"
