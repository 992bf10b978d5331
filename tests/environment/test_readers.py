"""State readers look at what a trial left behind, without trusting it: bounded, read-only, never through a link."""

import os
import select
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.environment import Environment, EnvironmentSpec, parse_reader
from mcptrials.environment.command import run_command
from mcptrials.environment.remains import MAX_BYTES, MAX_ROWS
from mcptrials.protocols import Place, StateQuery
from mcptrials.trial import StateValue

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def no_wire(server: str) -> Any:
    raise AssertionError(server)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "trial").mkdir()
    (tmp_path / "project").mkdir()
    with closing(sqlite3.connect(tmp_path / "trial" / "t.db")) as connection:
        connection.executescript(
            "create table labels (key text, label text, rank integer);"
            "insert into labels values ('A', 'x', 1), ('A', 'y', 2), ('B', 'z', null);"
        )
    return Place(tmp_path / "trial", tmp_path / "project", no_wire)


def found(place: Place, reader: dict[str, Any]) -> StateValue:
    """What a reader in place of a query finds."""
    environment = Environment(EnvironmentSpec(), place.project_dir)
    return anyio.run(environment.read, StateQuery(text="q", read=reader), place)


def asked(place: Place, readers: dict[str, Any], query: str) -> StateValue:
    """What a query finds through the readers of a project."""
    environment = Environment(EnvironmentSpec(readers=readers), place.project_dir)
    return anyio.run(environment.read, StateQuery(text=query), place)


def sql(statement: str, **more: Any) -> dict[str, Any]:
    return {"sql": statement, "url": "sqlite:///{trial_dir}/t.db"} | more


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("select count(*) from labels", 3),
        ("select label from labels where key = 'B'", "z"),
        ("select rank from labels where key = 'B'", None),
        ("select label from labels order by label", ["x", "y", "z"]),
        ("select label from labels where key = 'none'", []),
        ("select key, rank from labels where key = 'B'", [{"key": "B", "rank": None}]),
        ("select key, rank from labels where key = 'none'", []),
        ("select 1.5", 1.5),
        ("select x'00ff'", "00ff"),
        ("select label, x'0a' as b from labels limit 1", [{"label": "x", "b": "0a"}]),
        ("with t(a) as (select 1 union select 2) select a from t", [1, 2]),
    ],
)
def test_a_query_gives_a_value_or_a_list_or_a_list_of_objects(place: Place, statement: str, value: Any) -> None:
    assert found(place, sql(statement)) == StateValue(value=value)


def test_names_of_a_query_are_bound_and_never_pasted(place: Place) -> None:
    readers = {"labels of {key}": sql("select label from labels where key = :key order by label")}
    assert asked(place, readers, "labels of A") == StateValue(value=["x", "y"])
    assert asked(place, readers, " labels of A ") == StateValue(value=["x", "y"])
    assert asked(place, readers, "labels of A' or '1'='1") == StateValue(value=[])
    assert asked(place, readers, "labels of A'; drop table labels; --") == StateValue(value=[])
    assert found(place, sql("select count(*) from labels")).value == 3


def test_a_pattern_may_have_several_names_and_any_other_characters(place: Place) -> None:
    readers = {
        "rank of {label} in {key}?": sql("select rank from labels where key = :key and label = :label"),
        "(labels) [of] {key} * $1.00 ^|\\": sql("select label from labels where key = :key"),
        "both": sql("select 1"),
    }
    assert asked(place, readers, "rank of y in A?").value == 2
    assert asked(place, readers, "(labels) [of] B * $1.00 ^|\\").value == "z"
    assert asked(place, readers, "both").value == 1
    for query in ("rank of y in A", "rank of y in AX?!", "(labels) [of]  * $1.00 ^|\\", "labels of B * $1.00 ^|\\", ""):
        assert "matches no reader" in str(asked(place, readers, query).error)


def test_a_query_that_two_patterns_match_is_answered_by_none(place: Place) -> None:
    error = asked(place, {"{a} of x": sql("select 1"), "y of {b}": sql("select 2")}, "y of x").error
    assert error == "query 'y of x' matches two readers: '{a} of x' and 'y of {b}'"


@pytest.mark.parametrize(
    "statement",
    [
        "insert into labels values ('C', 'w', 9)",
        "delete from labels",
        "drop table labels",
        "create table more (x)",
        "pragma user_version = 7",
        "vacuum",
        "create temp table more (x)",
        "begin",
        "pragma wal_checkpoint",
        "attach 'x.db' as x",
        "attach '{folder}/x.db' as x",
        "vacuum into '{folder}/x.db'",
        "detach main",
    ],
)
def test_a_statement_that_writes_fails_and_changes_nothing(place: Place, statement: str) -> None:
    before = (place.trial_dir / "t.db").read_bytes()
    read = found(place, sql(statement.replace("{folder}", str(place.trial_dir))))
    assert read.error
    assert read.value is None
    assert (place.trial_dir / "t.db").read_bytes() == before
    assert [path.name for path in place.trial_dir.iterdir()] == ["t.db"]


@pytest.mark.parametrize(
    ("make", "ask"),
    [
        ("create virtual table v using rtree(id, low, high); insert into v values (1, 2, 3)", "select id from v"),
        (
            "create virtual table v using fts5(t); insert into v values ('one')",
            "select rowid from v where t match 'one'",
        ),
        ("create view v as select 1", "with recursive c(x) as (select * from v) select x from c"),
        ("create table v (x)", "select count(*) from pragma_table_info('v')"),
        ("create table v (x)", "pragma encoding"),
    ],
)
def test_whatever_only_reads_is_allowed(place: Place, make: str, ask: str) -> None:
    with closing(sqlite3.connect(place.trial_dir / "t.db")) as database:
        database.executescript(make)
    assert found(place, sql(ask)).value in (1, "UTF-8")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("select", "incomplete input"),
        ("select * from missing", "no such table: missing"),
        ("select 1; select 2", "You can only execute one statement at a time."),
        ("select 9e999", "Out of range float values are not JSON compliant"),
        ("select key, key from labels", "two columns have one name: key, key; rename one with AS"),
        ("select zeroblob(20000000)", "string or blob too big"),
        ("select load_extension('x')", "not authorized"),
        ("select cast(x'ff' as text)", "Could not decode to UTF-8"),
    ],
)
def test_a_query_that_fails_is_an_error_in_one_line(place: Place, statement: str, error: str) -> None:
    state = found(place, sql(statement))
    assert state.value is None
    assert error in str(state.error)
    assert "\n" not in str(state.error)


def endless(columns: str) -> str:
    return "with recursive t(x) as (select 1 union all select x + 1 from t) select COLUMNS from t".replace(
        "COLUMNS", columns
    )


def test_a_query_that_runs_away_is_stopped(place: Place) -> None:
    began = time.monotonic()
    state = found(place, sql(endless("count(*)"), timeout_seconds=0.2))
    assert state.error == "the query did not end within 0.2 s"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("columns", ["x", "zeroblob(1000000)"])
def test_a_query_without_end_or_measure_does_not_fill_the_memory(place: Place, columns: str) -> None:
    error = found(place, sql(endless(columns))).error
    assert error == f"the query gives more than {MAX_ROWS} rows or 16 MiB"


def test_what_is_no_database_is_an_error(place: Place) -> None:
    (place.trial_dir / "junk.db").write_bytes(b"no database at all" * 100)
    (place.trial_dir / "link.db").symlink_to("t.db")
    (place.trial_dir / "folder.db").mkdir()
    os.mkfifo(place.trial_dir / "pipe.db")
    for name, refusal in [
        ("none.db", "database 'none.db' does not exist"),
        ("junk.db", "DatabaseError: file is not a database"),
        ("link.db", "'link.db' is a link"),
        ("folder.db", "database 'folder.db' does not exist"),
        ("pipe.db", "database 'pipe.db' does not exist"),
    ]:
        assert found(place, {"sql": "select * from t", "url": f"sqlite:///{{trial_dir}}/{name}"}).error == refusal
    for url in ("sqlite://t.db", "sqlite+pysqlite:///t.db"):
        assert found(place, {"sql": "select 1", "url": url}).error == f"{url!r} names no file; write sqlite:///PATH"


def test_a_relative_database_lies_in_the_trials_directory(place: Place) -> None:
    assert found(place, {"sql": "select count(*) from labels", "url": "sqlite:///t.db"}).value == 3


def test_a_database_that_its_server_left_in_wal_mode_is_read(place: Place) -> None:
    with closing(sqlite3.connect(place.trial_dir / "wal.db")) as connection:
        connection.executescript("pragma journal_mode = wal; create table t (x); insert into t values (1);")
    assert found(place, {"sql": "select x from t", "url": "sqlite:///wal.db"}) == StateValue(value=1)


def test_a_name_of_the_database_may_hold_any_character(place: Place) -> None:
    (place.trial_dir / "t.db").rename(place.trial_dir / "a b?c#d%25.db")
    assert found(place, {"sql": "select 1", "url": "sqlite:///a b?c#d%25.db"}).value == 1


def test_a_file_is_read_as_text_json_lines_or_as_being_there(place: Place) -> None:
    (place.trial_dir / "a.txt").write_bytes("\ufeffone\r\ntwo\x0c2\n\nthree".encode())
    (place.trial_dir / "a.json").write_text('{"items": [{"id": 7}], "none": null}', "utf-8")
    values = {
        "text": found(place, {"file": "a.txt"}).value,
        "lines": found(place, {"file": "{trial_dir}/a.txt", "as": "lines"}).value,
        "exists": found(place, {"file": "a.txt", "as": "exists"}).value,
        "json": found(place, {"file": "a.json", "as": "json"}).value,
        "path": found(place, {"file": "a.json", "as": "json", "path": "$.items[0].id"}).value,
    }
    assert values == {
        "text": "one\r\ntwo\x0c2\n\nthree",
        "lines": ["one", "two\x0c2", "", "three"],
        "exists": True,
        "json": {"items": [{"id": 7}], "none": None},
        "path": 7,
    }


def test_what_is_not_there_is_a_state_and_no_error(place: Place) -> None:
    (place.trial_dir / "a.json").write_text('{"items": []}', "utf-8")
    for reader in (
        {"file": "none.txt"},
        {"file": "no/where.json", "as": "json"},
        {"file": "a.json/below", "as": "lines"},
        {"file": "a.json", "as": "json", "path": "items[0]"},
    ):
        assert found(place, reader) == StateValue(value=None)
    assert found(place, {"file": "none.txt", "as": "exists"}) == StateValue(value=False)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)


def binary(path: Path) -> None:
    path.write_bytes(b"\x00\xff\xfe")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (pipe, "'x' is not a regular file"),
        (link, "'x' is a link"),
        (dangling, "'x' is a link"),
        (device, "'x' is a link"),
        (folder, "'x' is not a regular file"),
        (huge, "'x' has more than 16 MiB"),
        (binary, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 1: invalid start byte"),
    ],
)
def test_what_is_no_regular_text_file_is_refused(place: Place, make: Callable[[Path], None], error: str) -> None:
    make(place.trial_dir / "x")
    assert found(place, {"file": "x"}) == StateValue(error=error)


def test_devices_are_refused_by_their_own_name(place: Place) -> None:
    assert found(place, {"file": "/dev/zero"}) == StateValue(error="'zero' is not a regular file")


def test_a_folder_that_is_a_link_out_of_the_trials_directory_is_refused(place: Place) -> None:
    (place.project_dir / "secret.txt").write_text("s", "utf-8")
    (place.trial_dir / "out").symlink_to(place.project_dir)
    (place.trial_dir / "inner").mkdir()
    (place.trial_dir / "inner" / "a").write_text("a", "utf-8")
    (place.trial_dir / "in").symlink_to("inner")
    error = "is reached through a link out of the trial's directory"
    assert found(place, {"file": "out/secret.txt"}).error == f"'secret.txt' {error}"
    assert found(place, {"file": "../project/secret.txt"}).error == f"'secret.txt' {error}"
    assert found(place, {"file": "in/a"}).value == "a"
    assert found(place, {"file": "{project_dir}/secret.txt"}).value == "s"


@pytest.mark.parametrize("text", ["{", "NaN", "1e999", "[" * 50_000, ""])
def test_a_file_that_is_no_json_is_an_error_in_one_line(place: Place, text: str) -> None:
    (place.trial_dir / "a.json").write_text(text, "utf-8")
    error = str(found(place, {"file": "a.json", "as": "json"}).error)
    assert error.partition(":")[0] in ("JSONDecodeError", "ValueError", "TooDeepError", "TooLargeError")
    assert "\n" not in error


@pytest.mark.parametrize("part", ["..", "../t.db", "a/b", "/etc/passwd", "a\\b", "..hidden", "x\0y"])
def test_a_bound_name_cannot_leave_its_folder(place: Place, part: str) -> None:
    error = asked(place, {"note {name}": {"file": "notes/{name}.txt"}}, f"note {part}").error
    assert error == f"{part!r} may not stand in a path"


def test_a_bound_name_is_not_expanded_again(place: Place) -> None:
    (place.trial_dir / "{trial_dir}.txt").write_text("literal", "utf-8")
    assert asked(place, {"note {name}": {"file": "{name}.txt"}}, "note {trial_dir}").value == "literal"
    assert asked(place, {"note {name}": {"file": "{name}.txt"}}, "note {name}").value is None


def python(code: str, **more: Any) -> dict[str, Any]:
    return {"command": ["{python}", "-c", code]} | more


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (python("print('a'); print('b')"), "a\nb"),
        (python("print('é', end='')"), "é"),
        (python("import sys; sys.exit(3)", value="exit_code"), 3),
        (python("pass", value="exit_code"), 0),
        (python("print('{\"a\": [1]}')", value="json"), {"a": [1]}),
        (python("print('{\"a\": [1]}')", value="json", path="a[0]"), 1),
        (python("print('{}')", value="json", path="a[0]"), None),
        (python("import os; print(os.getcwd())"), "{project_dir}"),
        (python("import os; print(os.environ['MCPTRIALS_TRIAL_DIR'])"), "{trial_dir}"),
        (python("import sys; print(repr(sys.stdin.read()))"), "''"),
        (
            {"command": ["{python}", "-c", "import sys; print(sys.argv[1])", "{any} {trial_dir}"]},
            "{any} {trial_dir}",
        ),
    ],
)
def test_a_command_gives_what_it_prints_or_its_exit_code(place: Place, reader: dict[str, Any], value: Any) -> None:
    expected = place.expand(value) if isinstance(value, str) else value
    assert found(place, reader) == StateValue(value=expected)


def test_a_bound_name_is_one_argument_of_a_command(place: Place) -> None:
    readers = {"echo {word}": {"command": ["{python}", "-c", "import sys; print(sys.argv[1:])", "<{word}>"]}}
    assert asked(place, readers, "echo a b; $(c) '\"").value == str(["<a b; $(c) '\">"])


@pytest.mark.parametrize(
    ("reader", "error"),
    [
        ({"command": ["no-such-command-here"]}, "cannot start 'no-such-command-here': No such file or directory"),
        ({"command": ["."]}, "cannot start '.': Permission denied"),
        (
            python("import sys; print('out'); sys.exit('the end')"),
            f"{sys.executable!r} exited with code 1: the end",
        ),
        (python("raise SystemExit(2)"), f"{sys.executable!r} exited with code 2: it printed nothing on stderr"),
        (python("print('{')", value="json"), "JSONDecodeError: Expecting property name enclosed in double quotes"),
        (python("import time; time.sleep(60)", timeout_seconds=0.3), f"{sys.executable!r} did not end within 0.3 s"),
        (python("import os; os.kill(os.getpid(), 9)"), f"{sys.executable!r} exited with code -9: it printed nothing"),
    ],
)
def test_a_command_that_fails_is_an_error(place: Place, reader: dict[str, Any], error: str) -> None:
    state = found(place, reader)
    assert state.value is None
    assert str(state.error).startswith(error)


def test_a_command_that_prints_without_end_is_stopped_before_it_fills_the_memory(place: Place) -> None:
    began = time.monotonic()
    error = found(place, python("import sys\nwhile True: sys.stdout.write('x' * 65536)")).error
    assert error == f"{sys.executable!r} printed more than 16 MiB"
    assert time.monotonic() - began < 20


def test_what_a_command_leaves_running_ends_with_it(place: Place) -> None:
    code = f"import subprocess; print(subprocess.Popen({SLEEP!r}).pid)"
    state = found(place, python(code))
    assert ends_soon(int(state.value))


def test_a_command_that_takes_too_long_takes_its_children_with_it(place: Place) -> None:
    reader = {"command": ["sh", "-c", "sleep 60 & echo $! > pid; wait"], "timeout_seconds": 1}
    assert found(place, reader).error == "'sh' did not end within 1 s"
    assert ends_soon(int((place.project_dir / "pid").read_text()))


def ends_soon(pid: int) -> bool:
    """Whether a process that is no child of ours ends within seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return select.select([descriptor], [], [], 10)[0] == [descriptor]
    finally:
        os.close(descriptor)


def test_the_end_of_a_long_error_output_is_kept(place: Place) -> None:
    code = "import sys; sys.stderr.write('x' * 500_000 + '\\nthe end\\n')"
    _, output, errors = anyio.run(run_command, [sys.executable, "-c", code], place, 20)
    assert output == ""
    assert errors.endswith("x\nthe end\n")
    assert errors.startswith("[...] x")
    assert len(errors) <= (1 << 16) + len("[...] ")


@pytest.mark.parametrize("value", [None, {}, {"path": "x"}, {"sql": "x", "file": "y"}, {"file": "x", "mode": "r"}, []])
def test_what_describes_no_reader_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"reader|unknown key"):
        parse_reader(value)


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=8)


@settings(deadline=None, max_examples=50)
@given(before=WORDS, after=WORDS, key=WORDS)
def test_any_pattern_finds_what_was_put_in_its_place(before: str, after: str, key: str) -> None:
    spec = EnvironmentSpec.model_validate({"readers": {f"{plain(before)} {{key}} {plain(after)}": {"file": "{key}"}}})
    _, bound = spec.find_reader(f"{plain(before)} {key} {plain(after)}")
    assert bound == {"key": key}


def plain(text: str) -> str:
    return text.replace("{", "(").replace("}", ")")
