"""Databases other than SQLite, through SQLAlchemy (extra `sql`): read in a transaction that may not write."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import date, time
from typing import Any

import sqlalchemy
from sqlalchemy import pool
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from mcptrials.environment.remains import ReadError, bounded

_READ_ONLY = {
    "postgresql": (
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET TRANSACTION READ ONLY",
        "SET statement_timeout = {ms}",
    ),
    "mysql": ("SET SESSION max_execution_time = {ms}", "SET SESSION TRANSACTION READ ONLY", "COMMIT"),
    "mariadb": ("SET SESSION max_statement_time = {ms} / 1000", "SET SESSION TRANSACTION READ ONLY", "COMMIT"),
}
"""What makes a new connection unable to write, and ends a query that we no longer wait for; by dialect."""
_STREAMED = ("select", "with", "values", "table")
"""Queries that can be fetched in parts, so that too large an answer need not be held."""


class Database:
    """One connection per use: nothing of a trial is kept for the next."""

    def __init__(self, url: str, timeout_s: float) -> None:
        """Raises:
        ReadError: no such database or no driver for it.
        """
        self._timeout_ms = max(1, int(timeout_s * 1000))
        try:
            self._engine = sqlalchemy.create_engine(url, poolclass=pool.NullPool)
        except (SQLAlchemyError, ImportError, ValueError) as exc:
            raise ReadError(f"database {url.partition(':')[0]!r} cannot be used: {_line(exc)}") from exc

    def query(self, statement: str, bound: Mapping[str, str]) -> tuple[list[Any], list[str]]:
        """(rows, column names) of a query; names are written `:name`, any other colon `\\:`.

        Raises:
            ReadError: the database refuses, or the answer is too large.
        """
        with self._connection() as connection:
            for setting in _READ_ONLY.get(self._kind, ()):
                connection.exec_driver_sql(setting.format(ms=self._timeout_ms))
            streamed = statement.lstrip("( \n\t").lower().startswith(_STREAMED)
            options = {"stream_results": True, "max_row_buffer": 1000} if streamed else {}
            with closing(connection.execute(sqlalchemy.text(statement), bound, execution_options=options)) as result:
                if not result.returns_rows:
                    return [], []
                rows = bounded([_plain(value) for value in row] for row in result)
                return rows, list(result.keys())

    @property
    def _kind(self) -> str:
        """The dialect; MariaDB is one of its own, which shows once connected."""
        return "mariadb" if getattr(self._engine.dialect, "is_mariadb", False) else self._engine.dialect.name

    def execute(self, statements: str) -> None:
        """Statements as they stand, kept when all of them succeed.

        Raises:
            ReadError: the database refuses.
        """
        with self._connection() as connection:
            connection.exec_driver_sql(statements, execution_options={"no_parameters": True})
            connection.commit()

    @contextmanager
    def _connection(self) -> Iterator[sqlalchemy.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as exc:
            raise ReadError(_line(exc)) from exc


def _plain(value: Any) -> Any:
    """A database's value as JSON: what JSON has no kind for is a text, since a float would change a decimal."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, date | time):
        return value.isoformat()
    return bytes(value) if isinstance(value, bytearray | memoryview) else str(value)


def _line(exc: Exception) -> str:
    """What the driver said, without the statement and the links that SQLAlchemy adds."""
    cause = exc.orig if isinstance(exc, DBAPIError) and exc.orig is not None else exc
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__
