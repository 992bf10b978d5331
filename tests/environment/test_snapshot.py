"""What has changed between two looks at a directory: files by content, databases by row, whatever else lies there."""

import math
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcptrials.environment import snapshot
from mcptrials.environment.remains import ReadError
from mcptrials.environment.snapshot import Snapshot, take_snapshot


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


def changes(before: Snapshot, folder: Path, pattern: str = "*") -> list[tuple[str, str, Any]]:
    found = before.changes_to(take_snapshot(folder), pattern)
    return [(each["in"], each["change"], each.get("row")) for each in found]


def test_files_are_added_changed_and_removed(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    before = take_snapshot(tmp_path)
    (tmp_path / "a").unlink()
    (tmp_path / "b").write_text("B")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "d").write_text("d")
    os.utime(tmp_path / "c", (0, 0))
    assert changes(before, tmp_path) == [("a", "removed", None), ("b", "changed", None), ("sub/d", "added", None)]
    assert changes(before, tmp_path, "sub/*") == [("sub/d", "added", None)]


def test_rows_are_compared_as_a_multiset_and_a_changed_row_is_two_changes(tmp_path: Path) -> None:
    db = tmp_path / "s.db"
    sql(db, 'create table "a ""b" (x, y)', 'insert into "a ""b" values (1, 1), (2, 1), (2, 1)')
    before = take_snapshot(tmp_path)
    sql(db, 'delete from "a ""b" where rowid = 2', 'update "a ""b" set y = 7 where x = 1')
    assert changes(before, tmp_path) == [
        ('s.db/a "b', "removed", {"x": 1, "y": 1}),
        ('s.db/a "b', "removed", {"x": 2, "y": 1}),
        ('s.db/a "b', "added", {"x": 1, "y": 7}),
    ]


def test_blobs_infinities_and_what_stands_in_the_log_of_a_database_are_seen(tmp_path: Path) -> None:
    db = tmp_path / "s.db"
    sql(db, "create table t (x)", "pragma journal_mode=wal")
    before = take_snapshot(tmp_path)
    with closing(sqlite3.connect(db)) as database:
        database.execute("insert into t values (?), (?)", (b"\x00\xff", math.inf))
        database.commit()
        assert (tmp_path / "s.db-wal").stat().st_size
        assert changes(before, tmp_path) == [
            ("s.db/t", "added", {"x": {"hex": "00ff"}}),
            ("s.db/t", "added", {"x": {"real": "inf"}}),
        ]


@pytest.mark.parametrize(("value", "text"), [(b"\x61", "61"), (b"\x61", '{"hex": "61"}'), (math.inf, "inf")])
def test_what_is_no_text_is_another_state_than_the_text_that_spells_it(
    value: object, text: str, tmp_path: Path
) -> None:
    db = tmp_path / "s.db"
    sql(db, "create table t (x)")
    with closing(sqlite3.connect(db)) as database:
        database.execute("insert into t values (?)", (value,))
        database.commit()
        before = take_snapshot(tmp_path)
        database.execute("update t set x = ?", (text,))
        database.commit()
    assert [how for _, how, _ in changes(before, tmp_path)] == ["removed", "added"]


def test_a_table_that_comes_or_changes_its_columns_is_a_change(tmp_path: Path) -> None:
    db = tmp_path / "s.db"
    sql(db, "create table t (x)")
    before = take_snapshot(tmp_path)
    sql(db, "create table u (x)", "alter table t add column y")
    assert changes(before, tmp_path) == [("s.db/t/", "changed", None), ("s.db/u/", "added", None)]


def test_links_and_pipes_are_never_opened_and_temporary_files_are_no_state(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    folder = tmp_path / "trial"
    folder.mkdir()
    before = take_snapshot(folder)
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(outside)
    (folder / "dir").symlink_to(tmp_path)
    for name in (".tmp-x", ".home/.cache/y", ".home/z"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("x")
    seen = [("link", "added"), ("dir", "added"), ("pipe", "added"), (".home/z/file", "added")]
    assert sorted(change[:2] for change in changes(before, folder)) == sorted(seen)
    outside.write_text("y")
    assert len(changes(take_snapshot(folder), folder)) == 0


def test_a_link_that_leads_elsewhere_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("here")
    before = take_snapshot(tmp_path)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("there")
    assert [change[:2] for change in changes(before, tmp_path)] == [("link", "changed")]


def test_too_much_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = take_snapshot(tmp_path)
    for number in range(6):
        (tmp_path / f"{number}").write_text("four")
    monkeypatch.setattr(snapshot, "MAX_CHANGES", 5)
    with pytest.raises(ReadError, match="more than 5 files or rows"):
        changes(before, tmp_path)
    monkeypatch.setattr(snapshot, "MAX_FILES", 5)
    with pytest.raises(ReadError, match="more than 5 files"):
        take_snapshot(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(snapshot, "MAX_BYTES", 5)
    with pytest.raises(ReadError, match="holds more than"):
        take_snapshot(tmp_path)


def test_what_cannot_be_looked_at_is_an_error_and_not_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a server could hide what it did in a folder whose path is longer than the system takes."""
    monkeypatch.chdir(tmp_path)
    for _ in range(20):
        os.mkdir("n" * 250)  # noqa: PTH102 - relative to where we stand
        os.chdir("n" * 250)
    with pytest.raises(OSError, match="too long"):
        take_snapshot(tmp_path)


def test_folders_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_FILES", 3)
    for number in range(4):
        (tmp_path / str(number)).mkdir()
    with pytest.raises(ReadError, match="more than 3 files"):
        take_snapshot(tmp_path)
