"""What a project or a task says about its environment."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError, field_validator

from mcptrials.environment.reader import Reader, parse_reader
from mcptrials.environment.readers.changes import ChangesReader
from mcptrials.environment.readers.command import CommandReader
from mcptrials.environment.readers.sql import SqlReader
from mcptrials.environment.readers.tool import ToolReader
from mcptrials.frozen import Items, UserData, inside, wrong_key

_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACES = {"trial_dir", "project_dir", "python"}


class EnvironmentSpec(UserData):
    """Fixtures, reset steps, state hash and readers."""

    files: dict[str, str] = {}
    """Copied before every trial: source (relative to the project) -> target (under {trial_dir})."""
    reset: Items[dict[str, Any]] = ()
    """Steps after the copy: `{command: [...]}` or `{sql: ..., url: ...}`."""
    state_hash: Items[dict[str, Any]] = ()
    """What must be equal before every trial; by default the copied files."""
    readers: dict[str, Any] = {}
    """Query pattern with {names} -> reader."""

    @field_validator("files")
    @classmethod
    def _targets_are_the_trials_own(cls, value: dict[str, str]) -> dict[str, str]:
        for source, target in value.items():
            first, *rest = target.split("/")
            if first != "{trial_dir}" or ".." in rest:
                raise wrong_key(source, "the target must lie under {trial_dir}/: trials run side by side")
        return value

    @field_validator("reset")
    @classmethod
    def _steps_can_reset(cls, value: Any) -> Any:
        for index, step in enumerate(value):
            if not isinstance(_reader(index, step), CommandReader | SqlReader):
                what = "a reset step is {command: [...]} or {sql: ..., url: ...}; copy files with 'files'"
                raise wrong_key(index, what)
        return value

    @field_validator("state_hash")
    @classmethod
    def _parts_can_be_read(cls, value: Any) -> Any:
        for index, part in enumerate(value):
            reader = _reader(index, part)
            if isinstance(reader, ChangesReader):
                raise wrong_key(index, "the hash is of what every trial starts from; name the files themselves")
            if isinstance(reader, ToolReader):
                raise wrong_key(index, "no server runs yet when the state is hashed; read what the server reads")
        return value

    @field_validator("readers")
    @classmethod
    def _names_are_bound(cls, value: dict[str, Any]) -> dict[str, Any]:
        for pattern, reader in value.items():
            given = pattern_names(pattern)
            if len(set(given)) < len(given):
                raise wrong_key(pattern, "the pattern has one name twice")
            if unbound := unbound_names(_reader(pattern, reader), given):
                raise wrong_key(pattern, f"the reader uses {unbound}, which the pattern does not name")
        return value

    def merged(self, over: Mapping[str, Any] | None) -> "EnvironmentSpec":
        """This environment with a task's additions: mappings are joined, lists replaced."""
        if not over:
            return self
        own = self.model_dump(by_alias=True)
        joined = {key: own.get(key, {}) | value if isinstance(value, Mapping) else value for key, value in over.items()}
        return EnvironmentSpec.model_validate(own | joined)

    def matching(self, query: str) -> list[tuple[str, Any, dict[str, str]]]:
        """The patterns that match a query, each with its reader and what its names are bound to."""
        matches = {pattern: _compiled(pattern.strip()).fullmatch(query.strip()) for pattern in self.readers}
        return [(each, self.readers[each], match.groupdict()) for each, match in matches.items() if match]

    def find_reader(self, query: str) -> tuple[Reader, dict[str, str]]:
        """The one reader whose pattern matches a query, and what its names are bound to.

        Raises:
            LookupError: no pattern matches, or several do.
        """
        found = self.matching(query)
        if not found:
            known = ", ".join(repr(pattern) for pattern in self.readers) or "none is declared"
            raise LookupError(f"query {query!r} matches no reader; readers: {known}")
        if len(found) > 1:
            raise LookupError(f"query {query!r} matches two readers: {found[0][0]!r} and {found[1][0]!r}")
        return parse_reader(found[0][1]), found[0][2]


def _reader(key: str | int, value: Any) -> Reader:
    """The reader at `key`, or an error that says where in it something is wrong."""
    try:
        return parse_reader(value)
    except ValidationError as exc:
        raise inside(key, exc) from None
    except ValueError as exc:
        raise wrong_key(key, str(exc)) from None


def pattern_names(pattern: str) -> list[str]:
    """The names that a query's pattern gives to its reader."""
    return _VARIABLE.findall(pattern)


def unbound_names(reader: Reader, given: Iterable[str] = ()) -> str:
    """The names that a reader uses though nothing gives them a value, as text."""
    return ", ".join(sorted(reader.names() - set(given) - _PLACES))


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = _VARIABLE.split(pattern)
    return re.compile("".join(f"(?P<{part}>.+?)" if i % 2 else re.escape(part) for i, part in enumerate(parts)))
