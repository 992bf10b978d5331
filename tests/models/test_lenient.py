"""Calls that a model wrote as text are found, and answers are left alone."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.models.lenient import find_calls

TOOLS = {"look", "add"}
LOOK = '{"name": "look", "arguments": {"key": "A-1"}}'
FOUND = (("look", '{"key": "A-1"}'),)


@pytest.mark.parametrize(
    "text",
    [
        LOOK,
        f"  \n{LOOK}\n\n",
        f"```json\n{LOOK}\n```",
        f"```\n{LOOK}\n```",
        f"```JSON\n{LOOK}",
        f"I look at it first.\n```json\n{LOOK}\n```",
        f"I look at it first.\n{LOOK}",
        f"[{LOOK}]",
        '{"arguments": {"key": "A-1"}, "name": "look", "more": [1, {"arguments": {}}]}',
        LOOK + "\n" * 50,
    ],
)
def test_a_call_is_found(text: str) -> None:
    assert find_calls(text, TOOLS) == FOUND


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{LOOK}\n```\n```json\n{LOOK}\n```",
        f"```json\n{LOOK}\n{LOOK}\n```",
        f"[{LOOK}, {LOOK}]",
        f"{LOOK},\n{LOOK}",
    ],
)
def test_several_calls_are_found(text: str) -> None:
    assert find_calls(text, TOOLS) == FOUND * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A-1",
        "[]",
        "{}",
        "42",
        '{"answer": 42}',
        '["look"]',
        LOOK[:-1],
        f"```json\n{LOOK[:-3]}",
        f"{LOOK} is how I would look.",
        f"```json\n{LOOK}\n```\nThe answer is 3.",
        f'The call {LOOK} found "3".',
        f'{LOOK}\n{{"answer": 42}}',
        '{"name": "unknown", "arguments": {}}',
        '{"name": "look", "arguments": "A-1"}',
        '{"name": "look"}',
        '{"name": ["look"], "arguments": {}}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"name": "look", "arguments": {"n": ' + "9" * 5000 + "}}",
    ],
)
def test_anything_else_stays_an_answer(text: str) -> None:
    assert find_calls(text, TOOLS) == ()


def test_argument_text_keeps_the_spelling_of_the_model() -> None:
    arguments = '{ "b":1.0,"a" : "\\u00e9\\/",\n"a": [ ] }'
    assert find_calls(f'{{"name":"add" , "arguments" :{arguments} }}', TOOLS) == (("add", arguments),)


def test_the_last_of_two_equal_keys_counts_as_in_json() -> None:
    assert find_calls('{"name": "look", "arguments": {"a": 1}, "arguments": {"a": 2}}', TOOLS) == (
        ("look", '{"a": 2}'),
    )


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ARGUMENTS = st.dictionaries(st.text(), SCALARS | st.lists(SCALARS, max_size=2), max_size=2)
CALLS = st.lists(st.tuples(st.sampled_from(sorted(TOOLS)), ARGUMENTS), min_size=1, max_size=3)


@settings(max_examples=50, deadline=None)
@given(CALLS, st.booleans(), st.sampled_from([None, 1]))
def test_every_call_written_is_read_back(
    calls: list[tuple[str, dict[str, object]]], fenced: bool, indent: int | None
) -> None:
    objects = [json.dumps({"name": name, "arguments": arguments}, indent=indent) for name, arguments in calls]
    text = "\n".join(f"```json\n{one}\n```" if fenced else one for one in objects)
    assert [(name, json.loads(raw)) for name, raw in find_calls(text, TOOLS)] == calls


@settings(deadline=None)
@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    assert find_calls(text, TOOLS) == ()


@settings(deadline=None)
@given(st.text(alphabet='{}[]",:` \n\\abn1'))
def test_no_near_json_breaks_the_parser(text: str) -> None:
    assert find_calls(text, TOOLS) == ()
