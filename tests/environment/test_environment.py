"""Every trial starts in the same clean world, or not at all."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcptrials.environment import Environment, EnvironmentSpec, TrialPlaces
from mcptrials.environment.world import hash_path
from mcptrials.errors import HarnessError, UsageError
from mcptrials.protocols import Place, StateQuery


def no_wire(server: str) -> Any:
    raise AssertionError(server)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project's folder with a database and a folder of notes as fixtures."""
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "empty").mkdir()
    (tmp_path / "notes" / "deep" / "a.txt").write_text("a", "utf-8")
    (tmp_path / "notes" / "link").symlink_to("deep/a.txt")
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.executescript("create table t (x); insert into t values (1);")
    return tmp_path


def environment(folder: Path, **spec: Any) -> Environment:
    return Environment(EnvironmentSpec.model_validate(spec), folder)


def place(folder: Path, name: str = "trial") -> Place:
    (folder / name).mkdir(exist_ok=True)
    return Place(folder / name, folder, no_wire)


FILES = {"t.db": "{trial_dir}/data/t.db", "notes": "{trial_dir}/notes"}


def test_fixtures_are_copied_with_what_is_in_them(folder: Path) -> None:
    here = place(folder)
    anyio.run(environment(folder, files=FILES).prepare, here)
    assert (here.trial_dir / "data" / "t.db").read_bytes() == (folder / "t.db").read_bytes()
    assert (here.trial_dir / "notes" / "deep" / "a.txt").read_text("utf-8") == "a"
    assert (here.trial_dir / "notes" / "empty").is_dir()
    assert (here.trial_dir / "notes" / "link").readlink() == Path("deep/a.txt")


def test_a_folder_may_become_the_trials_directory_itself(folder: Path) -> None:
    here = place(folder)
    anyio.run(environment(folder, files={"notes": "{trial_dir}"}).prepare, here)
    assert (here.trial_dir / "deep" / "a.txt").exists()


def test_two_places_come_out_alike_and_do_not_share(folder: Path) -> None:
    world = environment(
        folder,
        files=FILES,
        reset=[
            {"sql": "insert into t values (2)", "url": "sqlite:///{trial_dir}/data/t.db"},
            {"command": ["{python}", "-c", "open('{trial_dir}/made', 'w').write('{other}')"]},
        ],
        state_hash=[
            {"sql": "select x from t order by x", "url": "sqlite:///{trial_dir}/data/t.db"},
            {"file": "{trial_dir}/notes"},
            {"file": "{trial_dir}/made"},
        ],
    )
    one, two = place(folder, "one"), place(folder, "two")
    first, second = anyio.run(world.check, one), anyio.run(world.check, two)
    assert first == second is not None
    assert (one.trial_dir / "made").read_text("utf-8") == "{other}"
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        assert connection.execute("select x from t").fetchall() == [(1,)], "the fixture itself is untouched"
    (two.trial_dir / "made").write_text("changed", "utf-8")
    assert anyio.run(world.state_hash, two) != first
    assert anyio.run(world.state_hash, one) == first


def add_file(here: Path) -> None:
    (here / "notes" / "new").write_text("", "utf-8")


def add_folder(here: Path) -> None:
    (here / "notes" / "newer").mkdir()


def change_file(here: Path) -> None:
    (here / "notes" / "deep" / "a.txt").write_text("b", "utf-8")


def rename_file(here: Path) -> None:
    (here / "notes" / "deep" / "a.txt").rename(here / "notes" / "deep" / "b.txt")


def move_link(here: Path) -> None:
    (here / "notes" / "link").unlink()
    (here / "notes" / "link").symlink_to("empty")


def drop_file(here: Path) -> None:
    (here / "data" / "t.db").unlink()


def pipe_for_file(here: Path) -> None:
    (here / "data" / "t.db").unlink()
    os.mkfifo(here / "data" / "t.db")


@pytest.mark.parametrize(
    "change", [add_file, add_folder, change_file, rename_file, move_link, drop_file, pipe_for_file]
)
def test_without_a_declared_hash_every_change_of_a_copied_file_shows(
    folder: Path, change: Callable[[Path], None]
) -> None:
    world, here = environment(folder, files=FILES), place(folder)
    before = anyio.run(world.check, here)
    assert before == anyio.run(world.check, place(folder, "again"))
    change(here.trial_dir)
    assert anyio.run(world.state_hash, here) != before


def test_an_environment_without_anything_has_no_hash(folder: Path) -> None:
    assert anyio.run(environment(folder).check, place(folder)) is None


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"reset": [{"command": ["{python}", "-c", "raise SystemExit('no way')"]}]}, "exited with code 1: no way"),
        ({"reset": [{"command": ["no-such-command-here"]}]}, "cannot start 'no-such-command-here'"),
        ({"reset": [{"command": ["{python}", "-c", "input()"], "timeout_seconds": 20}]}, "EOFError"),
        (
            {"reset": [{"command": ["{python}", "-c", "import time; time.sleep(60)"], "timeout_seconds": 0.2}]},
            "did not end within 0.2 s",
        ),
        ({"reset": [{"sql": "insert into none values (1)", "url": "sqlite:///{trial_dir}/t.db"}]}, "no such table"),
        ({"reset": [{"sql": "select 1", "url": "sqlite:///{trial_dir}/no/t.db"}]}, "unable to open database file"),
        ({"reset": [{"sql": "select 1", "url": "sqlite://t.db"}]}, "names no file; write sqlite:///PATH"),
        ({"state_hash": [{"sql": "select 1", "url": "sqlite:///none.db"}]}, "'none.db' does not exist"),
        ({"state_hash": [{"command": ["{python}", "-c", "raise SystemExit(1)"]}]}, "exited with code 1"),
        ({"files": {"none": "{trial_dir}/x"}}, "cannot copy the fixtures"),
        ({"files": {"t.db": "{trial_dir}"}}, "cannot copy the fixtures"),
    ],
)
def test_a_reset_that_fails_is_a_fault_of_the_harness(folder: Path, spec: dict[str, Any], error: str) -> None:
    with pytest.raises(HarnessError) as caught:
        anyio.run(environment(folder, **spec).check, place(folder))
    assert (caught.value.cause, caught.value.blame) == ("reset", "harness")
    assert error in caught.value.message
    assert "\n" not in caught.value.message


def test_a_reset_in_sql_that_runs_away_is_stopped(folder: Path) -> None:
    endless = "create table u as with recursive t(x) as (select 1 union all select x + 1 from t) select count(*) from t"
    world = environment(folder, reset=[{"sql": endless, "url": "sqlite:///t.db", "timeout_seconds": 0.2}])
    began = time.monotonic()
    with pytest.raises(HarnessError, match=r"did not end within 0\.2 s"):
        anyio.run(world.prepare, place(folder))
    assert time.monotonic() - began < 10


def test_a_pipe_as_a_fixture_is_refused_and_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(HarnessError, match="cannot copy the fixtures"):
        anyio.run(environment(folder, files={"pipe": "{trial_dir}/pipe"}).prepare, place(folder))


def test_the_fingerprint_depends_on_what_the_fixtures_hold_and_on_every_key(folder: Path) -> None:
    def fingerprint(**spec: Any) -> str:
        return environment(folder, **spec).fingerprint()

    base = fingerprint(files=FILES)
    (folder / "moved").mkdir()
    (folder / "t.db").rename(folder / "moved" / "t.db")
    moved = {"moved/t.db": FILES["t.db"], "notes": FILES["notes"]}
    assert fingerprint(files=moved) == base, "where a fixture comes from does not count"
    reader = {"q": {"file": "x"}}
    different = [
        fingerprint(files={"notes": FILES["notes"]}),
        fingerprint(files=moved | {"notes": "{trial_dir}/other"}),
        fingerprint(files=moved, reset=[{"command": ["true"]}]),
        fingerprint(files=moved, readers=reader),
        fingerprint(files=moved, readers=reader, state_hash=[{"file": "x"}]),
    ]
    (folder / "notes" / "deep" / "a.txt").write_text("changed", "utf-8")
    different.append(fingerprint(files=moved))
    assert len({base, *different}) == 1 + len(different)


def test_the_fingerprint_of_a_fixture_that_is_a_link_is_that_of_what_it_shows(folder: Path) -> None:
    (folder / "linked.db").symlink_to("t.db")
    through = environment(folder, files={"linked.db": "{trial_dir}/t.db"})
    direct = environment(folder, files={"t.db": "{trial_dir}/t.db"})
    assert through.fingerprint() == direct.fingerprint()
    (folder / "t.db").write_bytes(b"other")
    assert through.fingerprint() == direct.fingerprint() != ""


def test_a_fixture_that_is_not_there_is_the_users_fault(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"environment\.files: fixture 'none' does not exist; check the path"):
        environment(folder, files={"none": "{trial_dir}/x"}).fingerprint()


def test_a_task_adds_to_the_environment_of_the_project() -> None:
    project = EnvironmentSpec.model_validate(
        {
            "files": {"a": "{trial_dir}/a"},
            "reset": [{"command": ["one"]}],
            "readers": {"q": {"file": "x", "as": "json"}, "r": {"file": "y"}},
        }
    )
    merged = project.merged({"files": {"b": "{trial_dir}/b"}, "readers": {"r": {"file": "z"}}, "reset": []})
    assert merged.files == {"a": "{trial_dir}/a", "b": "{trial_dir}/b"}
    assert merged.reset == ()
    assert merged.readers == {"q": {"file": "x", "as": "json"}, "r": {"file": "z"}}
    assert project.merged(None) is project
    assert project.merged({}) is project


def test_a_query_that_no_reader_answers_is_an_error_and_no_exception(folder: Path) -> None:
    state = anyio.run(environment(folder).read, StateQuery(text="q"), place(folder))
    assert (state.value, state.error) == (None, "query 'q' matches no reader; readers: none is declared")


def test_trial_directories_lie_outside_the_project_and_tell_nothing(folder: Path) -> None:
    places = TrialPlaces.create(folder)
    try:
        one, two = places.make(no_wire), places.make(no_wire)
        assert one.trial_dir != two.trial_dir
        assert list(one.trial_dir.iterdir()) == []
        assert not one.trial_dir.is_relative_to(folder)
        assert one.trial_dir.is_relative_to(places.root)
        places.remove(one)
        assert (one.trial_dir.exists(), two.trial_dir.exists()) == (False, True)
    finally:
        places.close()
    assert not places.root.exists()


def test_a_hash_tells_apart_names_contents_and_kinds(folder: Path) -> None:
    (folder / "file").write_text("x", "utf-8")
    (folder / "link").symlink_to("file")
    hashes = [hash_path(folder / name) for name in ("file", "link", "t.db", "notes", "notes/empty", "none")]
    assert len(set(hashes)) == len(hashes)
    assert hash_path(folder / "file") == hash_path(folder / "file")
