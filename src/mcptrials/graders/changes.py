"""`state_equals_reference`, `only_changes`: what a trial changed, and what it should have."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from mcptrials import excerpt
from mcptrials.encoding import dump_text, parse_json
from mcptrials.frozen import Items, UserData
from mcptrials.protocols import GradeInput, Judgement, StateQuery
from mcptrials.task import Task

CHANGES = StateQuery(text="changes", read={"changes": "*"})
"""Every file and every row of SQLite tables that differs from the pristine state."""
_TOLD = 3
_SHOWN = 200


class StateEqualsReference(UserData):
    """Passes when the trial leaves the state that the task's reference leaves."""

    default_gate: ClassVar[bool] = True

    queries: Items[str] = ()
    """What is compared, by the project's readers; by default all that has changed in files and SQLite tables."""
    ignore: Items[str] = ()
    """Globs of places (`log/*`, `shop.db/orders`) and columns (`shop.db/orders.id`, `*.id`); with `queries`, keys."""

    @field_validator("ignore")
    @classmethod
    def _something_is_compared(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not pattern.strip("*") for pattern in value):
            raise ValueError("with everything ignored every state would do")
        return value

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        if task.reference is None:
            raise ValueError("the task has no 'reference' whose state could be compared")
        asked = [StateQuery(text=query) for query in self.queries] or [CHANGES]
        return tuple(each.model_copy(update={"of": whose}) for each in asked for whose in ("trial", "reference"))

    def grade(self, given: GradeInput) -> Judgement:
        state = given.outcome.state
        queries = self.needs(given.task)
        for query in queries:
            if query.key not in state:
                return Judgement(None, f"{query.key!r} was not read")
            if (error := state[query.key].error) is not None:
                return Judgement(None, f"{query.key!r} could not be read: {error}")
        for own, reference in zip(queries[::2], queries[1::2], strict=True):
            found, wanted = (self._items(own, state[key].value) for key in (own.key, reference.key))
            if found != wanted:
                told = [("missing", wanted - found), ("not in the reference", found - wanted)]
                return Judgement(False, "wrong_state", f"{own.text}: {_told(told)}")
        return Judgement(True, "match", "the state is the reference's")

    def _items(self, query: StateQuery, value: Any) -> Counter[str]:
        """The parts of a value, whose order does not count."""
        if query.text != CHANGES.text:
            items = value if isinstance(value, list) else [value]
            return Counter(_sorted_text(_without(item, self.ignore)) for item in items)
        kept = [change for change in value if not _matches(change["in"], self.ignore)]
        return _without_returns([self._with_row(change) for change in kept])

    def _with_row(self, change: Mapping[str, Any]) -> Mapping[str, Any]:
        if "row" not in change:
            return change
        where, row = change["in"], change["row"]
        return {**change, "row": {key: row[key] for key in row if not _matches(f"{where}.{key}", self.ignore)}}


class Allowed(UserData):
    """Changes that may be, by place, kind and content."""

    in_: str = Field(alias="in", min_length=1)
    """A glob of files (`notes/*`) and tables (`shop.db/orders`)."""
    change: Literal["added", "removed", "changed"] | None = None
    where: dict[str, Any] = {}
    """Columns of the row with the values that they must have."""

    def covers(self, change: Mapping[str, Any]) -> bool:
        row = change.get("row") or {}
        return (
            fnmatchcase(change["in"], self.in_)
            and self.change in (None, change["change"])
            and all(name in row and row[name] == value for name, value in self.where.items())
        )


class OnlyChanges(UserData):
    """Passes when nothing but what is allowed has changed in files and SQLite tables."""

    default_gate: ClassVar[bool] = True

    allow: Items[Allowed] = ()

    @model_validator(mode="before")
    @classmethod
    def _places_may_stand_alone(cls, data: Any) -> Any:
        allow = data.get("allow") if isinstance(data, dict) else None
        if not isinstance(allow, list | tuple):
            return data
        return {**data, "allow": [{"in": item} if isinstance(item, str) else item for item in allow]}

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return (CHANGES,)

    def grade(self, given: GradeInput) -> Judgement:
        state = given.outcome.state.get(CHANGES.key)
        if state is None:
            return Judgement(None, "what has changed was not read")
        if state.error is not None:
            return Judgement(None, f"what has changed could not be read: {state.error}")
        beyond = [change for change in state.value if not any(each.covers(change) for each in self.allow)]
        if beyond:
            return Judgement(False, "wrong_state", _told([("not allowed", Counter(map(dump_text, beyond)))]))
        return Judgement(True, "match", f"{len(state.value)} changes, all allowed")


def _matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _without(value: Any, ignored: Sequence[str]) -> Any:
    """A value without the keys that are ignored, at any depth."""
    if isinstance(value, list):
        return [_without(item, ignored) for item in value]
    if isinstance(value, Mapping):
        return {key: _without(item, ignored) for key, item in value.items() if not _matches(key, ignored)}
    return value


def _without_returns(changes: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Of a row that differs in ignored columns only, the removal and the addition cancel each other."""
    count = Counter(map(_sorted_text, changes))
    for change in list(count):
        parsed = parse_json(change)
        if parsed["change"] == "added":
            back = _sorted_text({**parsed, "change": "removed"})
            both = min(count[change], count[back])
            count[change] -= both
            count[back] -= both
    return +count


def _sorted_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _told(groups: Iterable[tuple[str, Counter[str]]]) -> str:
    """The first of each group, in words."""
    parts = []
    for name, items in groups:
        some = [excerpt.beginning(item, _SHOWN) for item in sorted(items)[:_TOLD]]
        more = f" and {items.total() - len(some)} more" if items.total() > len(some) else ""
        parts += [f"{name}: {', '.join(some)}{more}"] if some else []
    return "; ".join(parts)
