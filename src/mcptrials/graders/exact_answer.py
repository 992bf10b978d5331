"""`exact_answer`: the final answer equals a known value."""

from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from mcptrials.frozen import Items, UserData, wrong_key
from mcptrials.graders.answer import Kind, as_number, match_answer, normalise
from mcptrials.protocols import GradeInput, Judgement, StateQuery
from mcptrials.source import Unquoted, UnquotedText
from mcptrials.task import Task


def plain_text(value: Any) -> Any:
    """An expected value as text: integers and booleans as written; what YAML would change must be quoted."""
    if isinstance(value, Unquoted | UnquotedText):
        written = value.written if isinstance(value, Unquoted) else str(value)
        raise ValueError(f'{written} is ambiguous: quote it, "{written}"')  # noqa: TRY004 - pydantic's contract
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value


class ExactAnswer(UserData):
    """Passes when the answer equals `expected`, one of several, or an alias."""

    default_gate: ClassVar[bool] = True

    expected: str | Items[str]
    aliases: Items[str] = ()
    kind: Kind | None = None
    abs_tol: float | None = Field(default=None, ge=0)
    rel_tol: float | None = Field(default=None, ge=0)

    @field_validator("expected", "aliases", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return [plain_text(item) for item in value] if isinstance(value, list | tuple) else plain_text(value)

    @field_validator("expected", "aliases")
    @classmethod
    def _can_match(cls, value: str | tuple[str, ...], info: ValidationInfo) -> str | tuple[str, ...]:
        texts = [value] if isinstance(value, str) else value
        if (info.field_name == "expected" and not texts) or not all(map(normalise, texts)):
            raise ValueError("it is empty: an empty answer never matches")
        return value

    @model_validator(mode="after")
    def _numbers_are_expected(self) -> "ExactAnswer":
        numeric = self.kind == "number" or self.abs_tol is not None or self.rel_tol is not None
        if numeric and all(as_number(normalise(text)) is None for text in self._alternatives):
            raise wrong_key("expected", "it is no number, which 'kind: number' and tolerances need")
        if numeric and self.kind in ("text", "id"):
            raise wrong_key("kind", "tolerances are for numbers")
        return self

    @property
    def _alternatives(self) -> list[str]:
        return [*([self.expected] if isinstance(self.expected, str) else self.expected), *self.aliases]

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def grade(self, given: GradeInput) -> Judgement:
        outcome = given.outcome
        if outcome.framing == "hedged":
            return Judgement(False, "hedged", f"several different answers; the last is {outcome.answer!r}")
        if outcome.answer is None:
            return Judgement(False, "no_answer", "the final message holds no answer")
        match = match_answer(self._alternatives, outcome.answer, self.kind, abs_tol=self.abs_tol, rel_tol=self.rel_tol)
        return Judgement(match.passed, match.reason, match.detail)
