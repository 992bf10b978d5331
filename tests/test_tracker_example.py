"""The example server is what the example's tasks say: their references are replayed on it."""

import asyncio
import re
import runpy
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from ruamel.yaml import YAML

EXAMPLE = Path(__file__).parent.parent / "examples" / "tracker"
FIXTURE = EXAMPLE / "fixtures" / "tracker.db"
STYLES = ("plain", "terse")


def load(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


PROJECT = load(EXAMPLE / "mcptrials.yaml")
TASKS: dict[str, Any] = {
    task["id"]: {**suite["defaults"], **task}
    for suite in map(load, sorted((EXAMPLE / "tasks").glob("*.yaml")))
    for task in suite["tasks"]
}
PATTERNS = {query: re.compile(query.replace("{key}", "(?P<key>.+)")) for query in PROJECT["environment"]["readers"]}


@dataclass(frozen=True)
class Replay:
    """What a reference's calls returned, and what the task's state queries say after them."""

    errors: tuple[str, ...]
    results: tuple[str, ...]
    state: Mapping[str, list[str]]


@dataclass(frozen=True)
class Listing:
    """What a client sees of the server before any call."""

    instructions: str | None
    tools: dict[str, dict[str, Any]]


def read(query: str, db: Path) -> list[str]:
    """The answer of the project's reader whose pattern is `query`."""
    (match, name), *more = [(found, name) for name, pattern in PATTERNS.items() if (found := pattern.fullmatch(query))]
    assert not more
    with closing(sqlite3.connect(db)) as database:
        rows = database.execute(PROJECT["environment"]["readers"][name]["sql"], match.groupdict()).fetchall()
    return [value for (value,) in rows]


def checks(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [grader for grader in task["graders"] if grader["type"] == "state_check"]


async def replay(client: Client, task: Mapping[str, Any], db: Path) -> Replay:
    shutil.copy(FIXTURE, db)
    answers = [await client.call_tool(call["tool"], call["args"]) for call in task["reference"].get("calls", [])]
    texts = [(answer.is_error, "".join(block.text for block in answer.content)) for answer in answers]  # type: ignore[union-attr]
    return Replay(
        errors=tuple(text for is_error, text in texts if is_error),
        results=tuple(text for is_error, text in texts if not is_error),
        state={check["query"]: read(check["query"], db) for check in checks(task)},
    )


async def serve(style: str, db: Path) -> tuple[Listing, dict[str, Replay]]:
    """All references, one after the other, on one server with a fresh database for each."""
    shutil.copy(FIXTURE, db)
    arguments = [str(EXAMPLE / "server.py"), "--db", str(db), "--style", style]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        tools = {tool.name: tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools}
        replays = {name: await replay(client, task, db) for name, task in TASKS.items()}
        return Listing(client.instructions, tools), replays


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Listing, dict[str, Replay]]]:
    folder = tmp_path_factory.mktemp("tracker")
    return {style: asyncio.run(serve(style, folder / f"{style}.db")) for style in STYLES}


Served = Mapping[str, tuple[Listing, dict[str, Replay]]]


def expected_answer(task: Mapping[str, Any]) -> str:
    return str(task["graders"][0]["expected"])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", TASKS)
def test_after_the_reference_every_state_check_holds(name: str, style: str, served: Served) -> None:
    state = served[style][1][name].state
    for check in checks(TASKS[name]):
        value = state[check["query"]]
        assert value == check["expected"] if "expected" in check else check["expected_contains"] in value


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.get("expects", "act") == "act"])
def test_the_reference_finds_the_expected_answer_in_the_server_results(name: str, served: Served) -> None:
    for style in STYLES:
        found = served[style][1][name]
        assert not found.errors
        assert TASKS[name]["reference"]["answer"] == expected_answer(TASKS[name])
        assert expected_answer(TASKS[name]) in found.results[-1]


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.get("expects") == "not_found"])
def test_a_missing_issue_is_an_error_that_says_what_to_do_next(name: str, served: Served) -> None:
    (error,) = served["plain"][1][name].errors
    assert "There is no issue 'AUTH-219'" in error
    assert "call search_issues" in error


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.get("expects") == "abstain"])
def test_a_question_without_the_tracker_has_a_reference_without_calls(name: str) -> None:
    assert "calls" not in TASKS[name]["reference"]
    assert TASKS[name]["reference"]["answer"] == expected_answer(TASKS[name])


def test_writing_references_change_the_database_and_reading_ones_do_not(served: Served) -> None:
    pristine = read("every label", FIXTURE)
    for name, task in TASKS.items():
        changed = served["plain"][1][name].state["every label"] != pristine
        assert changed == ("write" in task["tags"]), name


def test_the_answer_of_the_founding_task_is_the_only_true_one() -> None:
    statement = """
        select key, count(*) as times from history join issues using (key)
        where project = 'BILL' and type = 'bug' and event = 'reopened' and day between '2026-03-01' and '2026-03-31'
        group by key order by times desc
    """
    with closing(sqlite3.connect(FIXTURE)) as database:
        (first, times), (_, fewer), *_ = database.execute(statement).fetchall()
    assert first == expected_answer(TASKS["issues-017"])
    assert times > fewer


def test_the_styles_differ_in_descriptions_only(served: Served) -> None:
    plain, terse = (without_descriptions(served[style][0].tools) for style in STYLES)
    assert plain == terse
    assert served["plain"][0].tools != served["terse"][0].tools
    assert served["plain"][0].instructions
    assert served["plain"][0].instructions == served["terse"][0].instructions


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_descriptions(inner) for key, inner in value.items() if key != "description"}
    return value


def test_only_the_tool_that_writes_declares_that_it_does(served: Served) -> None:
    tools = served["plain"][0].tools
    assert {name for name, tool in tools.items() if not tool["annotations"]["readOnlyHint"]} == {"add_label"}


def test_results_are_short(served: Served) -> None:
    texts = [text for replay in served["plain"][1].values() for text in replay.results]
    assert max(map(len, texts)) < 450  # about 150 tokens


def test_expected_tools_are_those_of_the_reference_and_of_the_server(served: Served) -> None:
    for task in TASKS.values():
        used = {call["tool"] for call in task["reference"].get("calls", [])}
        assert used == set(task.get("expected_tools", [])) <= set(served["plain"][0].tools)


def test_the_committed_database_is_what_its_script_writes(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLE / "make_fixture.py"))["make_fixture"](tmp_path / "tracker.db")
    assert dump(tmp_path / "tracker.db") == dump(FIXTURE)


def dump(db: Path) -> list[str]:
    """The content: the bytes also hold the version of SQLite."""
    with closing(sqlite3.connect(db)) as database:
        return list(database.iterdump())


def test_both_projects_differ_in_their_variants_only() -> None:
    compare = load(EXAMPLE / "compare.yaml")
    assert list(compare.pop("variants")) == ["base", "terse"]
    assert compare == {key: value for key, value in PROJECT.items() if key != "variants"}


def test_twelve_tasks_are_for_tuning_and_two_are_held_out() -> None:
    assert [task.get("split", "train") for task in TASKS.values()].count("train") == 12
    assert len(TASKS) == 14
