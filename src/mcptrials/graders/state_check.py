"""`state_check`: the system behind the server is in the expected state after the trial."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import regex
from pydantic import Field, field_validator, model_validator

from mcptrials import excerpt
from mcptrials.encoding import canonical_hash, dump_text
from mcptrials.frozen import UserData
from mcptrials.graders.answer import same_decimal
from mcptrials.graders.exact_answer import plain_text
from mcptrials.jsonpath import parse_path, pick
from mcptrials.protocols import GradeInput, Judgement, StateQuery
from mcptrials.task import Task

_EXPECTATIONS = ("expected", "expected_contains", "expected_absent", "expected_count", "expected_regex")
_REGEX_TIMEOUT_S = 1.0
_SHOWN = 300


class StateCheck(UserData):
    """Passes when what a reader finds meets every expectation."""

    default_gate: ClassVar[bool] = True

    query: str | None = None
    read: dict[str, Any] | None = None
    path: str | None = None
    expected: Any = None
    expected_contains: str | None = None
    expected_absent: str | None = None
    expected_count: int | None = Field(default=None, ge=0)
    expected_regex: str | None = None

    @field_validator("expected", mode="before")
    @classmethod
    def _expected_as_text(cls, value: Any) -> Any:
        return [plain_text(item) for item in value] if isinstance(value, list) else plain_text(value)

    @field_validator("expected_contains", "expected_absent", mode="before")
    @classmethod
    def _part_as_text(cls, value: Any) -> Any:
        return plain_text(value)

    @field_validator("expected_contains", "expected_absent", "expected_count", "expected_regex")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        if value is None or not str(value).strip():
            raise ValueError("it is empty: every state would do, or none")
        return value

    @field_validator("expected_regex")
    @classmethod
    def _regex_compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                regex.compile(value)
            except regex.error as exc:
                raise ValueError(f"'expected_regex' is no regular expression: {exc}") from None
        return value

    @field_validator("path")
    @classmethod
    def _path_parses(cls, value: str | None) -> str | None:
        if value is not None:
            parse_path(value)
        return value

    @model_validator(mode="after")
    def _is_complete(self) -> "StateCheck":
        if (self.query is None) == (self.read is None):
            raise ValueError("give one of 'query' and 'read'")
        if not self.model_fields_set & set(_EXPECTATIONS):
            raise ValueError(f"nothing is expected; give one of {', '.join(_EXPECTATIONS)}")
        return self

    @property
    def question(self) -> StateQuery:
        text = self.query if self.query is not None else f"read {canonical_hash(self.read)[:16]}"
        return StateQuery(text=text, read=self.read)

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return (self.question,)

    def grade(self, given: GradeInput) -> Judgement:
        state = given.outcome.state.get(self.question.text)
        if state is None:
            return Judgement(None, "the state was not read")
        if state.error is not None:
            return Judgement(None, f"the state could not be read: {state.error}")
        try:
            value = pick(state.value, self.path) if self.path else state.value
        except LookupError as exc:
            return Judgement(False, "wrong_state", str(exc))
        try:
            unmet = next(self._unmet(value), None)
        except TimeoutError:
            return Judgement(None, f"'expected_regex' took longer than {_REGEX_TIMEOUT_S:g} s")
        return Judgement(False, "wrong_state", unmet) if unmet else Judgement(True, "match", _shown(value))

    def _unmet(self, value: Any) -> Iterator[str]:
        """What is not as expected, in words."""
        given = self.model_fields_set
        if "expected" in given and not _equals(self.expected, value):
            yield f"expected {_shown(self.expected)}, found {_shown(value)}"
        if self.expected_contains is not None and not _contains(value, self.expected_contains):
            yield f"{self.expected_contains!r} is not in {_shown(value)}"
        if self.expected_absent is not None and _contains(value, self.expected_absent):
            yield f"{self.expected_absent!r} is in {_shown(value)}"
        if self.expected_count is not None and _count(value) != self.expected_count:
            yield f"expected {self.expected_count} items, found {_count(value)}"
        if self.expected_regex is not None and not _matches(self.expected_regex, value):
            yield f"{self.expected_regex!r} does not match {_shown(value)}"


def _equals(expected: Any, value: Any) -> bool:
    """Equal as JSON; a scalar equals its text, numbers as decimals; outer space does not count, case does."""
    if isinstance(expected, list | tuple):
        items = value if isinstance(value, list) else [value]
        return len(items) == len(expected) and all(map(_equals, expected, items))
    if isinstance(expected, Mapping):
        return (
            isinstance(value, Mapping)
            and expected.keys() == value.keys()
            and all(_equals(item, value[key]) for key, item in expected.items())
        )
    if expected is None or value is None or isinstance(value, list | Mapping):
        return expected is None and value is None
    wanted, found = _text(expected).strip(), _text(value).strip()
    return wanted == found or same_decimal(wanted, found)


def _contains(value: Any, part: str) -> bool:
    """Of a list: an element equals; of a text: a substring; case and outer space ignored."""
    wanted = part.strip().casefold()
    if isinstance(value, list):
        return any(_text(item).strip().casefold() == wanted for item in value)
    if isinstance(value, Mapping):
        return any(_contains(item, part) for item in value.values())
    return value is not None and wanted in _text(value).casefold()


def _count(value: Any) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, list | dict) else 1


def _matches(expression: str, value: Any) -> bool:
    return regex.search(expression, _text(value), timeout=_REGEX_TIMEOUT_S) is not None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return plain_text(value) if isinstance(value, bool | int) else dump_text(value)


def _shown(value: Any) -> str:
    return excerpt.beginning(dump_text(value), _SHOWN)
