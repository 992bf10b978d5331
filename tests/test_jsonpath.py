"""Dotted paths lead to one value inside JSON, or say at which step there is nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptrials.jsonpath import parse_path, pick

DOCUMENT: dict[str, Any] = {
    "items": [{"name": "a"}, {"name": "b"}],
    "a b": {"x.y": 1, "": 2},
    "$ref": 3,
    "n": None,
    "t": "text",
}
DOCUMENT["rows"] = [{"cells": [{"x": 1}, {"x": 2}]}, {"cells": [{"x": 3}]}]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", DOCUMENT),
        ("", DOCUMENT),
        ("items[0].name", "a"),
        ("$.items[0].name", "a"),
        ("$.items[-1].name", "b"),
        (".items[1]", {"name": "b"}),
        ("a b", {"x.y": 1, "": 2}),
        ('["a b"]["x.y"]', 1),
        ('["a b"][""]', 2),
        ("$ref", 3),
        ('$["$ref"]', 3),
        ("n", None),
        ("items[*].name", ["a", "b"]),
        ("items[*]", [{"name": "a"}, {"name": "b"}]),
        ("rows[*].cells[*].x", [1, 2, 3]),
        ("rows[*].cells", [[{"x": 1}, {"x": 2}], [{"x": 3}]]),
    ],
)
def test_a_path_leads_to_its_value(path: str, value: Any) -> None:
    assert pick(DOCUMENT, path) == value


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("none", "'none'"),
        ("items[2]", "2"),
        ("items[-3]", "-3"),
        ("items.name", "'name'"),
        ("items[0][0]", "0"),
        ("n.x", "'x'"),
        ("t[0]", "0"),
        ("t.x", "'x'"),
        ("items[0].name.x", "'x'"),
    ],
)
def test_a_path_to_nothing_names_the_step(path: str, step: str) -> None:
    with pytest.raises(LookupError) as caught:
        pick(DOCUMENT, path)
    assert str(caught.value) == f"nothing at {step} of path {path!r}"


@pytest.mark.parametrize(
    "path", ["a..b", "a.", "$.", "a[", "a[x]", "a[1", "a]", "[", '["a]', "a[1e3]", "a[9999999999]"]
)
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is malformed at"):
        parse_path(path)


@given(path=st.text(max_size=30))
def test_any_text_is_a_path_or_is_refused(path: str) -> None:
    try:
        steps = parse_path(path)
    except ValueError:
        return
    assert all(isinstance(step, str | int) for step in steps)


KEYS = st.text(st.characters(exclude_characters='"', codec="utf-8"), max_size=8)


@given(steps=st.lists(KEYS | st.integers(0, 3), max_size=5), leaf=st.integers())
def test_every_place_of_a_document_can_be_reached(steps: list[str | int], leaf: int) -> None:
    document: Any = leaf
    for step in reversed(steps):
        document = {step: document} if isinstance(step, str) else [*range(step), document]
    path = "$" + "".join(f'["{step}"]' if isinstance(step, str) else f"[{step}]" for step in steps)
    assert pick(json.loads(json.dumps(document)), path) == leaf
