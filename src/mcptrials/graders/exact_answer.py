"""`exact_answer`: the final answer equals a known value."""

from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from mcptrials.frozen import Items, UserData, wrong_key
from mcptrials.graders.answer import Kind, Options, alternatives, compare_answer, expected_problem, infer
from mcptrials.graders.answer.options import NAMES, given_names, misfits, unfit
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
    """The right answer; of a list, any of them. For kinds set and list, the items."""
    aliases: Items[str] = ()
    """Texts that are right as well."""
    kind: Kind | None = None
    """How answers are compared; by default the kind that the expected value seems to be, which `check` shows."""
    abs_tol: float | None = Field(default=None, ge=0)
    """The largest difference of numbers that still matches."""
    rel_tol: float | None = Field(default=None, ge=0)
    """The same as a share of the expected number."""
    unit: str | None = Field(default=None, min_length=1)
    """The unit of a number; another unit is converted or does not match."""
    unit_optional: bool = False
    """Whether a quantity may be given without its unit."""
    decimal_comma: bool = False
    """Whether answers have the comma before decimals and the point between thousands."""
    fraction_ok: bool = False
    """Whether 0.125 is 12.5%."""
    dayfirst: bool | None = None
    """Whether 05/03/2024 is in March; without it such a date does not match."""
    assume_utc: bool = False
    """Whether a time without a zone is in UTC."""
    epoch_ok: bool = False
    """Whether a moment may be given as seconds or milliseconds since 1970."""
    case_sensitive: bool = False
    """Whether upper and lower case differ."""

    @field_validator("expected", "aliases", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return [plain_text(item) for item in value] if isinstance(value, list | tuple) else plain_text(value)

    @field_validator("expected", "aliases")
    @classmethod
    def _can_match(cls, value: str | tuple[str, ...], info: ValidationInfo) -> str | tuple[str, ...]:
        texts = [value] if isinstance(value, str) else value
        if (info.field_name == "expected" and not texts) or not all(text.strip(" \t\r\n.\"'`") for text in texts):
            raise ValueError("it is empty: an empty answer never matches")
        return value

    @model_validator(mode="after")
    def _options_fit(self) -> "ExactAnswer":
        for value in self.values:
            kind = self.kind or infer(value, self.options)
            if problem := expected_problem(value, kind, self.options):
                raise wrong_key("expected", problem)
        kinds = set(self.kinds)
        for name in misfits(given_names(self.options), kinds):
            raise wrong_key(name, unfit(name, kinds))
        return self

    @property
    def values(self) -> list[str]:
        """Each expected value, without aliases."""
        return alternatives([self.expected] if isinstance(self.expected, str) else self.expected, self.kind)

    @property
    def kinds(self) -> list[Kind]:
        """The kind of each expected value."""
        return [self.kind or infer(value, self.options) for value in self.values]

    @property
    def options(self) -> Options:
        return Options(**{name: getattr(self, name) for name in NAMES})

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def grade(self, given: GradeInput) -> Judgement:
        outcome = given.outcome
        if outcome.framing == "hedged":
            return Judgement(False, "hedged", f"several different answers; the last is {outcome.answer!r}")
        if outcome.answer is None:
            return Judgement(False, "no_answer", "the final message holds no answer")
        try:
            match = compare_answer((self.values, self.aliases), outcome.answer, self.kind, self.options)
        except TimeoutError:
            return Judgement(None, "the pattern takes too long on this answer")
        return Judgement(match.passed, match.reason, match.detail)
