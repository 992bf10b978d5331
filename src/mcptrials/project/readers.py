"""What a reader needs and a run would miss only at its end: its server, its function, its database's driver."""

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mcptrials import plugins
from mcptrials.environment import PythonReader, Reader, SqlReader, ToolReader
from mcptrials.environment.remains import TIMEOUT_S, ReadError
from mcptrials.errors import UsageError
from mcptrials.project.config import ProjectConfig
from mcptrials.source import alike


def check_reader(reader: Reader, config: ProjectConfig, project_dir: Path, given: Iterable[str] = ()) -> None:
    """Looks for what a reader needs; nothing is read.

    Args:
        given: the names of its pattern.

    Raises:
        UsageError: it is not there.
    """
    if isinstance(reader, ToolReader):
        try:
            reader.target(config.servers)
        except LookupError as exc:
            server, slash, _ = reader.tool.partition("/")
            meant = alike(server, config.servers) if slash else None
            raise UsageError(str(exc.args[0]), hint=meant and f"did you mean {meant!r}?") from exc
    elif isinstance(reader, PythonReader):
        _check_function(reader, plugins.load("readers", reader.python, project_dir), given)
    elif isinstance(reader, SqlReader) and not reader.is_sqlite:
        _check_database(reader)


def _check_function(reader: PythonReader, function: Any, given: Iterable[str]) -> None:
    if not callable(function):
        raise UsageError(f"{reader.python!r} is no function", hint="name one that takes the trial's place")
    names = reader.parameters(given)
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # some of those written in C do not tell
    try:
        signature.bind(None, **dict.fromkeys(names))
    except TypeError as exc:
        called = ", ".join(["the trial's place", *(f"{name}=" for name in names)])
        raise UsageError(f"{reader.python!r} cannot be called with ({called}): {exc}", hint=_FIT) from exc


_FIT = "change its parameters, or the names in the pattern and 'params'"


def _check_database(reader: SqlReader) -> None:
    try:
        plugins.load("readers", "database")(reader.url, TIMEOUT_S)
    except (UsageError, ReadError) as exc:
        kind = reader.url.partition(":")[0]
        hint = "install mcptrials[sql] and the database's driver, or name the driver in the URL"
        raise UsageError(f"database {kind!r} cannot be used: {_reason(exc)}", hint=hint) from exc


def _reason(exc: Exception) -> str:
    """What is said of the cause alone: the database is named already."""
    mark = "': " if isinstance(exc, UsageError) else "cannot be used: "
    said = exc.what if isinstance(exc, UsageError) else str(exc)
    return said.partition(mark)[2] or said
