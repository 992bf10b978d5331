"""`sql`: the answer of a database to a query."""

import re
from pathlib import Path
from typing import Any

from anyio import to_thread
from pydantic import Field, field_validator

from mcptrials.environment.look import Look
from mcptrials.environment.own_thread import in_own_thread
from mcptrials.environment.remains import TIMEOUT_S, ReadError, execute, query, sqlite_path
from mcptrials.frozen import UserData
from mcptrials.protocols import Place

_PARAMETER = re.compile(r"(?<![:\w\\]):([A-Za-z_]\w*)(?!:)")
"""As SQLAlchemy finds it, so that `x::text` is no name."""
_NO_PARAMETERS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Literals and comments of SQL."""


class SqlReader(UserData):
    """One value, a list for one column, else a list of objects."""

    sql: str = Field(min_length=1)
    url: str
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)
    before_close: bool = False

    @field_validator("url")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        if "://" not in value:
            raise ValueError("a database is named by its URL, such as sqlite:///PATH or postgresql://HOST/NAME")
        return value

    @property
    def is_sqlite(self) -> bool:
        return re.match(r"sqlite\b", self.url) is not None

    def names(self) -> set[str]:
        return set(_PARAMETER.findall(_NO_PARAMETERS.sub("", self.sql)))

    async def read(self, look: Look) -> Any:
        rows, columns = await self._answer(look)
        if not columns:
            raise ReadError("the statement gives no columns; a reader asks with SELECT")
        if len(columns) == 1:
            values = [row[0] for row in rows]
            return values[0] if len(values) == 1 else values
        if len(set(columns)) < len(columns):
            raise ReadError(f"two columns have one name: {', '.join(columns)}; rename one with AS")
        return [dict(zip(columns, row, strict=True)) for row in rows]

    async def _answer(self, look: Look) -> tuple[list[Any], list[str]]:
        bound = {name: look.bound[name] for name in self.names() if name in look.bound}
        if self.is_sqlite:
            path, inside = self._file(look.place), look.place.trial_dir
            return await to_thread.run_sync(query, path, inside, self.sql, bound, self.timeout_seconds)
        database = look.load("database")(look.place.expand(self.url), self.timeout_seconds)
        statement = _NO_PARAMETERS.sub(lambda match: match[0].replace(":", "\\:"), self.sql)
        return await in_own_thread(lambda: database.query(statement, bound), self.timeout_seconds, "the query")

    async def execute(self, look: Look) -> None:
        """The statements, which may write, for a reset.

        Raises:
            ReadError: they did not end in time, or the database refuses.
            sqlite3.Error: SQLite refuses.
        """
        if self.is_sqlite:
            await to_thread.run_sync(execute, self._file(look.place), self.sql, self.timeout_seconds)
        else:
            database = look.load("database")(look.place.expand(self.url), self.timeout_seconds)
            await in_own_thread(lambda: database.execute(self.sql), self.timeout_seconds, "the statements")

    def _file(self, place: Place) -> Path:
        return place.trial_dir / sqlite_path(place.expand(self.url))
