"""What a server may leave behind to mislead a reader: a torn database, another directory, loops, endless depth."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.environment.test_readers import found, no_wire, sql

from mcptrials.environment import Environment, EnvironmentSpec, TrialPlaces
from mcptrials.errors import HarnessError
from mcptrials.protocols import Place
from mcptrials.trial import StateValue


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A trial's directory with a database of three rows."""
    (tmp_path / "trial").mkdir()
    with closing(sqlite3.connect(tmp_path / "trial" / "t.db")) as connection:
        connection.executescript(
            "create table labels (key text, label text, rank integer);"
            "insert into labels values ('A', 'x', 1), ('A', 'y', 2), ('B', 'z', null);"
        )
    return Place(tmp_path / "trial", tmp_path, no_wire)


SPILLING = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("pragma journal_mode = " + sys.argv[2])
connection.execute("pragma cache_size = 1")
connection.execute("begin")
connection.execute("update labels set label = 'torn'")
connection.execute(
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 500) "
    "insert into labels select 'C', hex(randomblob(2000)), i from n")
if sys.argv[2] == "wal":
    connection.execute("commit")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("journal", "rows"), [("delete", 3), ("truncate", 3), ("persist", 3), ("wal", 503)])
def test_a_database_is_read_as_sqlite_recovers_it_after_its_writer_was_killed(
    place: Place, journal: str, rows: int
) -> None:
    database = place.trial_dir / "t.db"
    killed = subprocess.run([sys.executable, "-c", SPILLING, str(database), journal], check=False, timeout=60)
    assert killed.returncode == -9
    before = {path.name: path.read_bytes() for path in place.trial_dir.glob("t.db*") if not path.name.endswith("shm")}
    assert len(before) == 2  # the database, and what was left beside it
    assert found(place, sql("select count(*) from labels")) == StateValue(value=rows)
    assert {name: (place.trial_dir / name).read_bytes() for name in before} == before
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("select count(*) from labels").fetchone() == (rows,)


def test_a_directory_that_a_server_put_in_the_place_of_the_trials_is_not_read(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "keep").write_text("theirs")
    for put in ("link", "directory"):
        places = TrialPlaces.create(tmp_path)
        try:
            place = places.make(no_wire)
            (place.trial_dir / "keep").write_text("ours")
            assert found(place, {"file": "{trial_dir}/keep"}).value == "ours"
            place.trial_dir.rename(place.trial_dir.with_name("moved"))
            if put == "link":
                place.trial_dir.symlink_to(victim)
            else:
                victim.rename(place.trial_dir)
            for reader in ({"file": "{trial_dir}/keep"}, {"command": ["cat", "{trial_dir}/keep"]}, sql("select 1")):
                error = "the trial's directory was replaced by another: nothing in it is read"
                assert found(place, reader) == StateValue(error=error)
            hashed = EnvironmentSpec(state_hash=({"file": "{trial_dir}/keep"},))
            with pytest.raises(HarnessError, match="replaced by another"):
                anyio.run(Environment(hashed, tmp_path).state_hash, place)
            places.remove(place)
            assert (place.trial_dir / "keep").read_text() == "theirs"
        finally:
            if put == "directory":
                place.trial_dir.rename(victim)
            places.close()
        assert (victim / "keep").read_text() == "theirs"
        assert not places.root.exists()


def test_a_trial_directory_that_a_server_deleted_holds_nothing(tmp_path: Path) -> None:
    places = TrialPlaces.create(tmp_path)
    try:
        place = places.make(no_wire)
        place.trial_dir.rmdir()
        assert found(place, {"file": "{trial_dir}/keep"}) == StateValue(value=None)
        places.remove(place)
    finally:
        places.close()


def test_links_in_a_circle_are_an_error_of_the_reader(place: Place) -> None:
    (place.trial_dir / "a").symlink_to("b")
    (place.trial_dir / "b").symlink_to("a")
    assert "loop" in (found(place, {"file": "{trial_dir}/a/x"}).error or "").lower()


def test_json_that_is_nested_too_deeply_is_an_error_of_the_reader(place: Place) -> None:
    (place.trial_dir / "deep").write_text("[" * 201 + "]" * 201)
    (place.trial_dir / "flat").write_text("[" * 200 + "]" * 200)
    read = {name: found(place, {"file": f"{{trial_dir}}/{name}", "as": "json"}) for name in ("deep", "flat")}
    assert (read["deep"].error, read["flat"].error) == ("TooDeepError: nested more than 200 levels deep", None)
