"""JSON is read strictly, and what is written is one UTF-8 line that reads back equal."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.encoding import (
    MAX_DEPTH,
    TooDeepError,
    canonical_hash,
    deeper,
    dump_line,
    dump_text,
    parse_foreign,
    parse_json,
)

ANY_TEXT = st.text(st.characters())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=50)
@given(value=JSON)
def test_a_line_is_one_line_of_utf_8_and_reads_back_equal(value: Any) -> None:
    line = dump_line(value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    assert parse_json(line) == value
    assert parse_json(line.decode()) == value


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800", '\ud83d"', "\u2028\u0085\x0b"])
def test_lone_surrogates_and_odd_line_ends_survive(text: str) -> None:
    line = dump_line({text: text})
    assert line.count(b"\n") == 1
    assert parse_json(line) == {text: text}


def test_text_stays_readable_where_it_can() -> None:
    assert dump_text({"a": "größer \U0001f600"}) == '{"a":"größer \U0001f600"}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")]])
def test_what_is_no_number_is_not_written(value: Any) -> None:
    for write in (dump_line, canonical_hash):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(value)


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "-Infinity", "1e999", '{"a": -1e400}', "", "{", "'a'", "01", "9" * 5000]
)
def test_what_is_no_json_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
    with pytest.raises(ValueError, match=r"."):
        parse_json(text.encode())


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    with pytest.raises(ValueError, match="decode"):
        parse_json(b'"\xff"')


@settings(deadline=None, max_examples=50)
@given(value=JSON)
def test_equal_values_have_equal_hashes_whatever_the_order_of_their_keys(value: Any) -> None:
    again = json.loads(json.dumps(value))
    assert canonical_hash(value) == canonical_hash(turned(again))
    assert canonical_hash([value]) != canonical_hash(value)


def turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def test_the_hash_is_the_sha_256_of_sorted_compact_json() -> None:
    assert canonical_hash({"b": 1, "a": "é"}) == "6d9eb45284090145dc16661b06abe01185a16a7dabba07c992a131bffa6b8114"


def nested(levels: int) -> str:
    return '[{"a":' * (levels // 2) + "[]" * (levels % 2) + "null" * (1 - levels % 2) + "}]" * (levels // 2)


@pytest.mark.parametrize("levels", [0, 1, 2, 7, MAX_DEPTH, MAX_DEPTH + 1, 500])
def test_what_comes_from_outside_has_a_bounded_depth(levels: int) -> None:
    text = nested(levels)
    assert not deeper(parse_json(text), levels)
    assert levels == 0 or deeper(parse_json(text), levels - 1)
    if levels <= MAX_DEPTH:
        assert parse_foreign(text) == parse_json(text)
    else:
        with pytest.raises(TooDeepError, match="nested more than 200 levels deep"):
            parse_foreign(text)


def test_a_depth_that_cannot_be_read_at_all_is_no_json() -> None:
    with pytest.raises(TooDeepError, match="nested too deeply"):
        parse_json("[" * 100_000)
