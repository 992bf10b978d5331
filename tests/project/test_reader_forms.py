"""A reader is written flat or nested; both are the same, and both are refused with the place of what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcptrials.environment import parse_reader
from mcptrials.errors import UsageError
from mcptrials.project import Project

LITE = "sqlite:///x.db"


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        (
            {"sql": {"statement": "select 1", "url": LITE, "timeout_seconds": 1}},
            {"sql": "select 1", "url": LITE, "timeout_seconds": 1},
        ),
        (
            {"file": {"path": "p", "as": "json", "json_path": "a.b", "before_close": True}},
            {"file": "p", "as": "json", "path": "a.b", "before_close": True},
        ),
        ({"command": {"argv": ["x"], "value": "json", "path": "a"}}, {"command": ["x"], "value": "json", "path": "a"}),
        ({"tool": {"name": "s/t", "args": {"a": 1}}}, {"tool": "s/t", "args": {"a": 1}}),
        (
            {"http": {"url": "http://h/x", "method": "POST", "body": {"a": 1}}},
            {"http": "http://h/x", "method": "POST", "body": {"a": 1}},
        ),
        ({"python": {"function": "m:f", "params": {"a": 1}}}, {"python": "m:f", "params": {"a": 1}}),
    ],
)
def test_the_nested_form_is_the_flat_one(nested: dict[str, Any], flat: dict[str, Any]) -> None:
    assert parse_reader(nested) == parse_reader(flat)


def refusal(folder: Path, reader: str) -> str:
    """What is said of a reader at lines 6 and 7 of a project file."""
    (folder / "tasks.json").write_text(
        json.dumps({"id": "t", "prompt": "p", "graders": [{"type": "exact_answer", "expected": "x"}]})
    )
    text = (
        "version: 1\nservers: {s: {command: x}, other: {command: x}}\nmodels: ['local:m']\ntasks: [tasks.json]\n"
        f"environment: {{readers: {{\n  'q {{key}}':\n    {reader}\n}}}}\n"
    )
    (folder / "mcptrials.yaml").write_text(text)
    (folder / "look.py").write_text(
        "def look(place): ...\ndef by_key(key): ...\ndef more(place, a, b, key): ...\ndef any(place, **more): ...\n"
    )
    with pytest.raises(UsageError) as caught:
        Project.load(folder)
    place, _, problem = str(caught.value).partition('environment.readers["q {key}"]')
    assert place.removeprefix(str(folder)) in ("/mcptrials.yaml:6: ", "/mcptrials.yaml:7: ")
    return problem


@pytest.mark.parametrize(
    ("reader", "problem"),
    [
        ("{file: {pth: x}}", ".file.pth: unknown key 'pth'; did you mean 'path'?"),
        (
            "{file: {file: x}}",
            ".file.file: unknown key 'file'; known here: as, before_close, json_path, path",
        ),
        ("{sql: {url: 'sqlite:///x'}}", ".sql: key 'statement' is missing"),
        ("{sql: {statement: 3, url: 'sqlite:///x'}}", '.sql.statement: should be text, not 3; write "3"'),
        ("{sql: {statement: x, url: x.db}}", ".sql.url: a database is named by its URL, such as sqlite:///PATH"),
        ("{sql: {statement: 'select :k', url: 'sqlite:///x'}}", ": the reader uses k, which the pattern does not name"),
        ("{command: {argv: [x], value: jsn}}", ".command.value: should be 'stdout', 'exit_code' or 'json', not 'jsn'"),
        ("{command: {argv: []}}", ".command.argv: should have at least 1 item(s)"),
        ("{command: {argv: [x]}, value: json}", ".value: unknown key 'value'; known here: command"),
        ("{command: {argv: [x], path: a, json_path: b}}", ".command.json_path: both 'path' and 'json_path' are given"),
        ("{file: {path: x, as: json, json_path: 'a['}}", ".file.json_path: path 'a[' is malformed at '['"),
        ("{tool: dump}", ": tool 'dump' names no server: write SERVER/TOOL; servers here: s, other"),
        ("{tool: s/dump, before_close: false}", ".before_close: should be True, not false"),
        ("{tool: s/dump, args: {a: '{b}'}}", ": the reader uses b, which the pattern does not name"),
        ("{http: 'ftp://x/y'}", ".http: an address is written http://HOST/PATH or https://HOST/PATH"),
        ("{http: 'http://{key}/y'}", ".http: names may stand in the path and the query of an address, not in its host"),
        ("{http: {url: 'http://x', body: [{a: '{b}'}]}}", ": the reader uses b, which the pattern does not name"),
        ("{http: {url: 'http://x', method: get}}", ".http.method: should be 'GET', 'HEAD', 'POST', 'PUT', 'PATCH' or"),
        ("{http: 'http://x', value: text, path: a}", ".path: 'path' leads into JSON only"),
        ("{python: looks}", ".python: a function is written module:function or ./file.py:function"),
        ("{python: './no.py:look'}", ": cannot load './no.py:look': FileNotFoundError"),
        ("{python: 'json:nothing'}", ": cannot load 'json:nothing': AttributeError"),
        (
            "{python: './look.py:look'}",
            ": './look.py:look' cannot be called with (the trial's place, key=): got an unexpected keyword argument",
        ),
        (
            "{python: './look.py:by_key'}",
            ": './look.py:by_key' cannot be called with (the trial's place, key=): multiple values for argument 'key'",
        ),
        (
            "{python: './look.py:more', params: {a: 1}}",
            ": './look.py:more' cannot be called with (the trial's place, a=, key=): missing a required argument: 'b'",
        ),
        ("{python: 'sys:path'}", ": 'sys:path' is no function; name one that takes the trial's place"),
        (
            "{sql: select 1, url: 'nosuch://x/y'}",
            ": database 'nosuch' cannot be used: NoSuchModuleError",
        ),
    ],
)
def test_a_reader_that_cannot_work_is_refused_with_its_place(tmp_path: Path, reader: str, problem: str) -> None:
    assert refusal(tmp_path, reader).startswith(problem)


def test_what_a_reader_asks_for_is_no_secret(tmp_path: Path) -> None:
    tasks: dict[str, Any] = {"id": "t", "prompt": "p", "graders": [{"type": "exact_answer", "expected": "x"}]}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    reader = {"tool": "dump", "args": {"key": "{key}", "token": "BILL-4821-part-7"}}
    web = {"http": "http://u:pass-w0rd-9@h/x", "headers": {"X-Key": "abc-123-def-456"}, "body": {"key": "BILL-77"}}
    project = {"version": 1, "servers": {"s": {"command": "x"}}, "models": ["local:m"], "tasks": ["tasks.json"]}
    project |= {"environment": {"readers": {"a {key}": reader, "web": web}}}
    (tmp_path / "mcptrials.yaml").write_text(json.dumps(project))
    assert set(Project.load(tmp_path).secrets.values()) == {"pass-w0rd-9", "abc-123-def-456"}


def test_of_a_template_only_what_stays_the_same_can_be_a_secret(tmp_path: Path) -> None:
    tasks: dict[str, Any] = {"id": "t", "prompt": "p", "graders": [{"type": "exact_answer", "expected": "x"}]}
    headers = {
        "X-Key": "{password}",
        "Authorization": "Bearer {password}",
        "Cookie": "{trial_dir}",
        "X-Token": "{python}",
    }
    web = {"http": "http://h/x?token={password}", "headers": headers}
    half = {"http": "http://h/", "headers": {"X-Key": "abc-123-def-456-{password}"}}
    tasks |= {"environment": {"readers": {"b {password}": web}}}
    server = {"command": "x", "env": {"TOKEN": "{password}"}}
    project = {"version": 1, "servers": {"s": server}, "models": ["local:m"], "tasks": ["tasks.json"]}
    project |= {"environment": {"readers": {"a {password}": web, "c {password}": half}}}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    (tmp_path / "mcptrials.yaml").write_text(json.dumps(project))
    found = set(Project.load(tmp_path).secrets.values())
    assert found == {"abc-123-def-456-", "{password}"}  # in a server's settings, braces are just braces
