"""What was decided about an answer, with its reason."""

from dataclasses import dataclass
from typing import Literal

from mcptrials import excerpt

Reason = Literal["match", "wrong", "near_miss", "hedged", "no_answer", "format"]

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class AnswerMatch:
    """A judgement with its reason, and the detail that a person needs to agree."""

    passed: bool
    reason: Reason
    detail: str


def matched(expected: str, how: str = "") -> AnswerMatch:
    """It is the expected value; `how` says which rule made it so."""
    return AnswerMatch(True, "match", f"equals {shown(expected)}{f' {how}' if how else ''}")


def missed(expected: str, answer: str, looser: str | None = None) -> AnswerMatch:
    """It is another value; `looser` is the rule by which it would have been the same."""
    said = f"expected {shown(expected)}, not {shown(answer)}"
    return (
        AnswerMatch(False, "near_miss", f"{said}: would match {looser}")
        if looser
        else AnswerMatch(False, "wrong", said)
    )


def hedged(expected: str, answer: str, why: str) -> AnswerMatch:
    """It does not settle on one value."""
    return AnswerMatch(False, "hedged", f"expected {shown(expected)} alone, not {shown(answer)}: {why}")


def shown(text: str) -> str:
    """A text in quotes, its beginning if it is long."""
    return repr(excerpt.beginning(text, _SHOWN))
