"""The graders of a task: each must be able to decide, and says where in its file it cannot."""

from pathlib import Path

import pytest

from mcptrials.errors import UsageError
from mcptrials.project import Project, make_grader
from mcptrials.task import Task

PROJECT = """\
{"version": 1,
 "servers": {"tracker": {"command": "python"}},
 "environment": {"readers": {
   "labels of {key}": {"sql": "select label from labels where key = :key", "url": "sqlite:///{trial_dir}/t.db"},
   "status of {key}": {"sql": "select status from issues where key = :key", "url": "sqlite:///{trial_dir}/t.db"},
   "{word} of BILL-1": {"sql": "select :word", "url": "sqlite:///{trial_dir}/t.db"}}},
 "models": ["scripted:script.yaml"],
 "tasks": ["tasks/*"]}
"""


def load(folder: Path, **files: str | bytes) -> Project:
    """A project with these task files; `a_yaml` is tasks/a.yaml."""
    (folder / "project.json").write_text(PROJECT, "utf-8")
    (folder / "tasks").mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / "tasks" / ".".join(name.rsplit("_", 1))
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Project.load(folder / "project.json", environ={})


def only(folder: Path, text: str) -> Task:
    (task,) = load(folder, a_yaml=text).suite.tasks
    return task


def refusal(folder: Path, **files: str | bytes) -> str:
    """The one line that refuses the task files, without their folder."""
    with pytest.raises(UsageError) as caught:
        load(folder, **files)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(f"{folder}/", "")


def with_grader(grader: str) -> str:
    return f"id: t\nprompt: p\ngraders:\n  - {grader}\n"


@pytest.mark.parametrize(("written", "text"), [("BILL-482", "BILL-482"), ("12", "12"), ("-3", "-3"), ("true", "true")])
def test_expected_text_integers_and_booleans_need_no_quotes(tmp_path: Path, written: str, text: str) -> None:
    task = only(tmp_path, with_grader(f"{{type: exact_answer, expected: {written}}}"))
    assert make_grader(task.graders[0], tmp_path).expected == text  # type: ignore[attr-defined]


@pytest.mark.parametrize("written", ["1.10", "007", "2026-03-01", "1e3", "1_000", "0x1F"])
@pytest.mark.parametrize(
    ("grader", "key"),
    [
        ("type: exact_answer, expected: {}", "expected"),
        ("type: exact_answer, expected: [ok, {}]", "expected"),
        ("type: exact_answer, expected: ok, aliases: [{}]", "aliases"),
        ("type: state_check, query: status of BILL-2, expected: {}", "expected"),
        ("type: state_check, query: status of BILL-2, expected: [ok, {}]", "expected"),
        ("type: state_check, query: status of BILL-2, expected_contains: {}", "expected_contains"),
        ("type: state_check, query: status of BILL-2, expected_absent: {}", "expected_absent"),
    ],
)
def test_what_yaml_could_change_must_be_quoted(tmp_path: Path, grader: str, key: str, written: str) -> None:
    line = refusal(tmp_path, a_yaml=with_grader("{" + grader.format(written) + "}"))
    assert line == f'tasks/a.yaml:4: graders[0].{key}: {written} is ambiguous: quote it, "{written}"'


def test_numbers_of_json_that_could_change_must_be_quoted_too(tmp_path: Path) -> None:
    text = '{"id": "t", "prompt": "p",\n"grader": [{"type": "exact_answer",\n"expected": 1.10}]}'
    line = 'tasks/a.json:3: grader[0].expected: 1.10 is ambiguous: quote it, "1.10"'
    assert refusal(tmp_path, a_json=text) == line


QUERY = "query: labels of BILL-2"
STATE_FAULTS = [
    (
        "query: owner of BILL-2, expected: x",
        "query: query 'owner of BILL-2' matches no reader; readers: 'labels of "
        "{key}', 'status of {key}', '{word} of BILL-1'; did you mean '{word} of BILL-1'? else "
        "declare it under environment.readers of the project file",
    ),
    (
        "query: labels of BILL-1, expected: x",
        "query: query 'labels of BILL-1' matches two readers: 'labels of {key}' "
        "and '{word} of BILL-1'; change the patterns so that one matches",
    ),
    ("expected: x", ": give one of 'query' and 'read'"),
    (f"{QUERY}, read: {{file: x}}, expected: x", ": give one of 'query' and 'read'"),
    (
        QUERY,
        ": nothing is expected; give one of expected, expected_contains, "
        "expected_absent, expected_count, expected_regex",
    ),
    (f"{QUERY}, expected_contains: ", "expected_contains: it is empty: every state would do, or none"),
    (f"{QUERY}, expected_contains: ' '", "expected_contains: it is empty: every state would do, or none"),
    (f"{QUERY}, expected_absent: ''", "expected_absent: it is empty: every state would do, or none"),
    (f"{QUERY}, expected_regex: ''", "expected_regex: it is empty: every state would do, or none"),
    (f"{QUERY}, expected_count: ", "expected_count: it is empty: every state would do, or none"),
    (f"{QUERY}, expected_count: -1", "expected_count: should be greater than or equal to 0, not -1"),
    (
        f"{QUERY}, expected_regex: '('",
        "expected_regex: 'expected_regex' is no regular expression: missing ) at position 1",
    ),
    (f"{QUERY}, expected: x, path: 'a['", "path: path 'a[' is malformed at '['; write a.b[0].c"),
    (f"{QUERY}, expectd: x", "expectd: unknown key 'expectd'; did you mean 'expected'?"),
    (
        "read: {sql: 'select :key', url: sqlite:///x}, expected: x",
        "read: the reader uses key, which nothing gives a value",
    ),
    (
        "read: {sqll: x}, expected: x",
        "read: a reader has exactly one of sql, file, command, tool, http, python, changes; this one has sqll",
    ),
    ("read: {file: {pth: x}}, expected: x", "read.file.pth: unknown key 'pth'; did you mean 'path'?"),
    ("read: {python: 'sys:path'}, expected: x", ": 'sys:path' is no function; name one that takes the trial's place"),
    ("read: {file: x, sa: json}, expected: x", "read.sa: unknown key 'sa'; known here: as, before_close, file, path"),
]


@pytest.mark.parametrize(("grader", "problem"), STATE_FAULTS)
def test_a_state_check_that_cannot_work_is_refused_with_its_place(tmp_path: Path, grader: str, problem: str) -> None:
    line = refusal(tmp_path, a_yaml=with_grader("{type: state_check, " + grader + "}"))
    assert line == f"tasks/a.yaml:4: graders[0]{'' if problem[0] == ':' else '.'}{problem}"


def test_a_grader_of_the_users_own_is_loaded_from_beside_the_project(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n"
        "@dataclass\nclass Mine:\n    default_gate: ClassVar[bool] = True\n    word: str\n"
        "    def needs(self, task): return ()\n    def grade(self, given): raise NotImplementedError\n",
        "utf-8",
    )
    (tmp_path / "broken.py").write_text("x = 1 / 0\n", "utf-8")
    assert only(tmp_path, with_grader("{type: ./mine.py:Mine, word: w}")).graders[0].settings == {"word": "w"}
    assert "does not take these settings: TypeError" in refusal(tmp_path, a_yaml=with_grader("{type: ./mine.py:Mine}"))
    for type_, why in [
        ("./mine.py:Other", "AttributeError"),
        ("./broken.py:X", "ZeroDivisionError"),
        ("./none.py:X", "FileNotFoundError"),
        ("':X'", "ValueError"),
    ]:
        line = refusal(tmp_path, a_yaml=with_grader(f"{{type: {type_}}}"))
        assert line.startswith("tasks/a.yaml:4: graders[0].type: cannot load ")
        assert why in line
