"""The JSON Schemas for editors: those in `docs/` are today's, and hold for the files that can be loaded."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from mcptrials.project.published import published_schema

ROOT = Path(__file__).parents[2]
FILES = {"project": "mcptrials.schema.json", "tasks": "tasks.schema.json"}


def fits(kind: Any, value: Any) -> bool:
    return Draft202012Validator(published_schema(kind)).is_valid(value)


@pytest.mark.parametrize("kind", FILES)
def test_the_published_file_is_what_the_code_says_today(kind: Any) -> None:
    """If not: `make schemas`."""
    assert json.loads((ROOT / "docs" / FILES[kind]).read_text("utf-8")) == published_schema(kind)


@pytest.mark.parametrize("kind", FILES)
def test_it_is_a_valid_schema_that_describes_every_key(kind: Any) -> None:
    """A key without a description: write one under its field, or in `project.published`."""
    schema = published_schema(kind)
    Draft202012Validator.check_schema(schema)
    held = {"": schema, **schema["$defs"]}
    bare = [f"{name}.{key}" for name, each in held.items() for key, part in each.get("properties", {}).items()
            if "description" not in part]  # fmt: skip
    assert bare == []


def shown(name: str) -> Any:
    return YAML(typ="safe", pure=True).load((ROOT / "examples" / "tracker" / name).read_text("utf-8"))


def test_the_files_of_the_example_fit() -> None:
    assert fits("project", shown("mcptrials.yaml"))
    names = [path.name for path in (ROOT / "examples" / "tracker").glob("tasks*.yaml")]
    assert [name for name in names if not fits("tasks", shown(name))] == []


PROJECT = {"version": 1, "servers": {"s": {"command": "x"}}, "models": ["local:m"], "tasks": ["t.yaml"]}


@pytest.mark.parametrize(
    ("keys", "right"),
    [
        ({}, True),
        ({"models": [{"model": "openai:m", "schema": "exact", "settings": {"temperature": 0}}]}, True),
        ({"hosts": ["loop", {"host": "loop", "instructions": True}]}, True),
        ({"variants": {"a": {}, "b": {"s": {"args": ["-v"]}}, "none": "none"}}, True),
        ({"trials": 0}, False),
        ({"trails": 5}, False),
        ({"models": []}, False),
        ({"models": [{"model": "openai:m", "schema": "claude"}]}, False),
        ({"servers": {"s": {"comand": "x"}}}, False),
        ({"limits": {"turns": 3}}, True),
        ({"limits": {"turn": 3}}, False),
    ],
)
def test_an_editor_is_told_what_is_wrong_in_a_project(keys: dict[str, Any], right: bool) -> None:
    assert fits("project", PROJECT | keys) is right


GRADER = {"type": "exact_answer", "expected": "5"}
TASK = {"id": "a", "prompt": "How much?", "graders": [GRADER]}


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (TASK, True),
        ([TASK, TASK], True),
        ({"defaults": {"graders": [GRADER]}, "tasks": [{"id": "a", "prompt": "x"}]}, True),
        ({"id": "a", "prompt": {"file": "p.md"}, "grader": GRADER, "split": "held-out", "limits": {"turns": 2}}, True),
        ({"id": "a", "prompt": "x"}, False),
        ({**TASK, "grader": GRADER, "split": "tset"}, False),
        ({**TASK, "promt": "x"}, False),
        ({"tasks": [TASK], "default": {}}, False),
        ("task", False),
    ],
)
def test_an_editor_is_told_what_is_wrong_in_a_task_file(value: Any, right: bool) -> None:
    assert fits("tasks", value) is right


@pytest.mark.parametrize(
    ("keys", "right"),
    [
        ({"kind": "date", "dayfirst": True, "aliases": [1, "one"]}, True),
        ({"expected": [1, True, "x"]}, True),
        ({"kind": "dates"}, False),
        ({"abs_tol": -1}, False),
        ({"aliases": "one"}, False),
        ({"expected": {"a": 1}}, False),
        ({"type": "max_calls", "expected": None, "max": 3}, True),
    ],
)
def test_an_editor_is_told_what_is_wrong_in_an_exact_answer(keys: dict[str, Any], right: bool) -> None:
    assert fits("tasks", {**TASK, "graders": [GRADER | keys]}) is right
