"""Databases other than SQLite: read without writing, within bounds, with names bound and values as JSON."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.environment.looking import asked, environment, found, make_place
from tests.environment.postgres import cluster

from mcptrials.environment.remains import MAX_ROWS
from mcptrials.errors import HarnessError
from mcptrials.trial import StateValue

pytestmark = pytest.mark.anyio
SETUP = """
create table labels (key text, label text, rank integer);
insert into labels values ('A', 'x', 1), ('A', 'y', 2), ('B', '100% :z \\', null);
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cluster() as server:
        yield server


@pytest.fixture
async def project(url: str, tmp_path: Path) -> Path:
    """A project's folder; its reset has filled the database."""
    drop = "drop table if exists labels;"
    await environment(tmp_path, reset=[{"sql": drop + SETUP, "url": url}]).prepare(make_place(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("select count(*) from labels", 3),
        ("select label from labels where key = 'A' order by 1", ["x", "y"]),
        ("select label from labels where key = 'none'", []),
        ("select key, rank from labels where key = 'B'", [{"key": "B", "rank": None}]),
        ("select label from labels where key = 'B' -- :no", "100% :z \\"),
        ("select '12:30 :key a::b \\:c' from labels where \"key\" = 'B'", "12:30 :key a::b \\:c"),
        ("select 12.50::numeric", "12.50"),
        ("select 1.5::float8", 1.5),
        ("select sum(rank)::text from labels", "3"),
        ("select '\\x00ff'::bytea", "00ff"),
        ("select timestamp '2026-03-01 10:00:00'", "2026-03-01T10:00:00"),
        ("select array[1, 2]", [1, 2]),
        ("""select '{"a": [1, null]}'::jsonb""", {"a": [1, None]}),
        ("select true", True),
        ("(select 1) union (select 2) order by 1", [1, 2]),
        ("show transaction_read_only", "on"),
    ],
)
async def test_a_query_gives_json(project: Path, url: str, statement: str, value: Any) -> None:
    assert await found(project, {"sql": statement, "url": url}) == StateValue(value=value)


async def test_names_of_a_query_are_bound_and_never_pasted(project: Path, url: str) -> None:
    reader = {"sql": "select label from labels where key = :key and rank::text = :rank", "url": url}
    for key, value in (("A", "x"), ("A' or '1'='1", []), ("A'; drop table labels; --", [])):
        assert await asked(project, "{rank} of {key}", reader, f"1 of {key}") == StateValue(value=value)
    nested = {"sql": {"statement": "select label from labels where rank = :rank", "url": url}}
    assert await asked(project, "rank {rank}", nested, "rank 2") == StateValue(value="y")


@pytest.mark.parametrize(
    "statement",
    [
        "insert into labels values ('C', 'w', 9)",
        "delete from labels",
        "drop table labels",
        "with gone as (delete from labels returning key) select key from gone",
        "commit; delete from labels",
    ],
)
async def test_a_statement_that_writes_fails_and_changes_nothing(project: Path, url: str, statement: str) -> None:
    state = await found(project, {"sql": statement, "url": url})
    assert "read-only transaction" in str(state.error) or "data-modifying" in str(state.error)
    assert (await found(project, {"sql": "select count(*) from labels", "url": url})).value == 3


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("select * from missing", 'UndefinedTable: relation "missing" does not exist'),
        ("select key, key from labels", "two columns have one name: key, key; rename one with AS"),
        ("select 'nan'::float8", "Out of range float values are not JSON compliant"),
        ("select x from generate_series(1, 1000000) as t(x)", f"more than {MAX_ROWS} rows"),
        ("select repeat('x', 20000000)", "16 MiB"),
        ("select :key", "key"),
    ],
)
async def test_a_query_that_fails_is_an_error_in_one_line(project: Path, url: str, statement: str, error: str) -> None:
    state = await found(project, {"sql": statement, "url": url})
    assert state.value is None
    assert error in str(state.error)
    assert "\n" not in str(state.error)


async def test_a_query_that_runs_away_is_stopped_here_and_there(project: Path, url: str) -> None:
    began = time.monotonic()
    state = await found(project, {"sql": "select pg_sleep(60)", "url": url, "timeout_seconds": 0.3})
    assert state.error is not None
    assert time.monotonic() - began < 10
    running = "select count(*) from pg_stat_activity where query like '%pg_sleep%' and pid <> pg_backend_pid()"
    with anyio.fail_after(10):
        while (await found(project, {"sql": running, "url": url})).value:
            pass


async def test_a_reset_that_a_database_refuses_is_a_fault_of_the_harness(project: Path, url: str) -> None:
    steps = [{"sql": "delete from labels; insert into none values (1)", "url": url}]
    with pytest.raises(HarnessError, match='reset step failed: UndefinedTable: relation "none" does not exist'):
        await environment(project, reset=steps).prepare(make_place(project))
    assert (await found(project, {"sql": "select count(*) from labels", "url": url})).value == 3


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("postgresql://127.0.0.1:1/none", "Connection refused"),
        ("nosuchdb://x/y", "database 'nosuchdb' cannot be used: NoSuchModuleError"),
        ("mysql+mysqldb://x/y", "database 'mysql+mysqldb' cannot be used: ModuleNotFoundError: No module named"),
        ("postgresql://x:secret@y:port/z", "database 'postgresql' cannot be used"),
    ],
)
async def test_a_database_that_is_not_there_is_an_error(url: str, error: str, tmp_path: Path) -> None:
    state = await found(tmp_path, {"sql": "select 1", "url": url})
    assert error in str(state.error)
    assert "\n" not in str(state.error)
