"""State readers: the kind that a mapping describes, in either of its two forms, and the value that one finds."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from mcptrials.environment.command import last_line, run_command
from mcptrials.environment.look import Look
from mcptrials.environment.readers.changes import ChangesReader
from mcptrials.environment.readers.command import CommandReader
from mcptrials.environment.readers.file import FileReader
from mcptrials.environment.readers.http import HttpReader
from mcptrials.environment.readers.python import PythonReader
from mcptrials.environment.readers.sql import SqlReader
from mcptrials.environment.readers.tool import ToolReader
from mcptrials.environment.remains import ReadError, refuse_other_dir
from mcptrials.errors import UsageError, describe
from mcptrials.frozen import inside_problem, unknown_key, wrong_key

__all__ = ["KINDS", "ReadError", "Reader", "attempt", "last_line", "parse_reader", "run_command"]

Reader = SqlReader | FileReader | CommandReader | ToolReader | HttpReader | PythonReader | ChangesReader


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of reader; its own key holds what the nested form calls `main`."""

    shape: type[Reader]
    main: str


KINDS: Mapping[str, _Kind] = {
    "sql": _Kind(SqlReader, "statement"),
    "file": _Kind(FileReader, "path"),
    "command": _Kind(CommandReader, "argv"),
    "tool": _Kind(ToolReader, "name"),
    "http": _Kind(HttpReader, "url"),
    "python": _Kind(PythonReader, "function"),
    "changes": _Kind(ChangesReader, "places"),
}


def parse_reader(value: Any) -> Reader:
    """The reader that a mapping describes: `{sql: ..., url: ...}`, or nested `{sql: {statement: ..., url: ...}}`.

    Raises:
        ValueError: none or several kinds, or settings that do not fit the kind.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"a reader is a mapping with one of {', '.join(KINDS)}")  # noqa: TRY004 - pydantic's contract
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        raise ValueError(f"a reader has exactly one of {', '.join(KINDS)}; this one has {_names(value)}")
    if isinstance(value[kinds[0]], Mapping):
        return _parse_nested(kinds[0], value)
    return KINDS[kinds[0]].shape.model_validate(value)


def _parse_nested(kind: str, value: Mapping[str, Any]) -> Reader:
    """The nested form, whose keys are those of the flat one but for the kind's own and, of a JSON path, `json_path`."""
    shape, names = KINDS[kind].shape, _nested_names(kind)
    for key in value:
        if key != kind:
            raise _invalid(kind, unknown_key(key, [kind]))
    given: dict[str, str] = {}
    for key in value[kind]:
        if key not in names:
            raise _invalid(kind, inside_problem(kind, _problem(unknown_key(key, names))))
        if names[key] in given:
            what = f"both {given[names[key]]!r} and {key!r} are given; keep one"
            raise _invalid(kind, inside_problem(kind, _problem(wrong_key(key, what))))
        given[names[key]] = key
    try:
        return shape.model_validate({names[key]: item for key, item in value[kind].items()})
    except ValidationError as exc:
        problem = min(exc.errors(include_url=False), key=lambda found: found["type"] == "missing")
        nested = {kind: KINDS[kind].main} | given
        loc = tuple(nested.get(str(step), step) if index == 0 else step for index, step in enumerate(problem["loc"]))
        raise _invalid(kind, inside_problem(kind, {**problem, "loc": loc})) from None


def _nested_names(kind: str) -> dict[str, str]:
    """The keys of the nested form, with what the flat form calls them."""
    fields = KINDS[kind].shape.model_fields
    names = {field.alias or name: field.alias or name for name, field in fields.items() if name != kind}
    into_json = {"json_path": "path"} if "path" in fields else {}
    return names | into_json | {KINDS[kind].main: kind}


def _problem(error: PydanticCustomError) -> dict[str, Any]:
    return {"type": error.type, "loc": (), "msg": error.message(), "ctx": error.context or {}, "input": None}


def _invalid(kind: str, error: PydanticCustomError) -> ValidationError:
    return ValidationError.from_exception_data(kind, [InitErrorDetails(type=error, loc=(), input=None)])


def _names(value: Mapping[str, Any]) -> str:
    return ", ".join(name if name.isidentifier() else repr(name) for name in value) or "none"


async def attempt(reader: Reader, look: Look) -> Any:
    """The value that a reader finds, as JSON.

    Raises:
        ReadError: for whatever reason it could not be read, in one line.
    """
    try:
        refuse_other_dir(look.place.trial_dir, look.place.inode)
        return _jsonable(await reader.read(look))
    except ReadError:
        raise
    except UsageError as exc:
        raise ReadError(str(exc)) from exc
    except (OSError, ValueError, LookupError, RuntimeError, sqlite3.Error, sqlite3.Warning) as exc:
        raise ReadError(describe(exc)) from exc


def _jsonable(value: Any) -> Any:
    """Blobs of databases as hex; the rest is JSON already."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    json.dumps(value, allow_nan=False)
    return value
