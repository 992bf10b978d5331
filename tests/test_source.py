"""A user's files become plain values that know their lines, and every fault is one line that says where it is."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.errors import UsageError
from mcptrials.source import Unquoted, UnquotedText, dotted, load_source, load_sources, nearest, read_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def value_of(folder: Path, name: str, text: str) -> Any:
    return load_source(written(folder, name, text)).value


def refusal(folder: Path, name: str, text: str | bytes) -> str:
    """The one line that refuses a file, without its folder."""
    with pytest.raises(UsageError) as caught:
        load_sources(written(folder, name, text))
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(f"{folder}/", "")


def test_yaml_and_json_give_the_same_plain_values(tmp_path: Path) -> None:
    expected = {"a": [1, "two", None, True], "b": {"c": "\U0001f600"}}
    assert value_of(tmp_path, "x.yaml", 'a: [1, two, null, true]\nb: {c: "\U0001f600"}\n') == expected
    escaped = '{"a": [1, "two", null, true], "b": {"c": "\\ud83d\\ude00"}}'
    assert value_of(tmp_path, "x.json", escaped) == expected
    assert value_of(tmp_path, "x.yaml", escaped) == expected


def test_jsonl_holds_one_document_per_line_and_empty_lines_count_as_lines(tmp_path: Path) -> None:
    first, second = load_sources(written(tmp_path, "x.jsonl", '{"id": 1}\r\n\n{"id": 2, "a": {"b": 3}}\n'))
    assert (first.value, second.value) == ({"id": 1}, {"id": 2, "a": {"b": 3}})
    assert second.where(("a", "b")) == f"{tmp_path}/x.jsonl:3: a.b"


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    assert value_of(tmp_path, "x.yaml", "\ufeffa: 1\n") == {"a": 1}
    assert value_of(tmp_path, "x.json", '\ufeff{"a": 1}') == {"a": 1}


def test_every_key_and_item_knows_its_line_in_yaml(tmp_path: Path) -> None:
    source = load_source(written(tmp_path, "x.yaml", "a:\n  - x\n  - b: 1\n    c: 2\n"))
    assert source.lines == {(): 1, ("a",): 1, ("a", 0): 2, ("a", 1): 3, ("a", 1, "b"): 3, ("a", 1, "c"): 4}


def test_every_key_and_item_knows_its_line_in_json(tmp_path: Path) -> None:
    source = load_source(written(tmp_path, "x.json", '{"a": [\n"x",\n{"b": [],\n"c": "}\\"{"}]}'))
    assert source.lines == {(): 1, ("a",): 1, ("a", 0): 2, ("a", 1): 3, ("a", 1, "b"): 3, ("a", 1, "c"): 4}


def test_a_place_that_the_file_does_not_have_is_that_of_its_nearest_parent(tmp_path: Path) -> None:
    source = load_source(written(tmp_path, "x.yaml", "a:\n  b: 1\n"))
    assert source.where(("a", "missing", 3)) == f"{tmp_path}/x.yaml:1: a.missing[3]"


def test_keys_are_shown_as_a_person_writes_them() -> None:
    assert dotted(("servers", "tracker", "args", 0)) == "servers.tracker.args[0]"
    assert dotted(("readers", "labels of {key}", "sql")) == 'readers["labels of {key}"].sql'
    assert "\n" not in dotted(("two\nlines",))


@pytest.mark.parametrize("text", ["1.10", "1e3", "-.5", "0.0", "1_0.5"])
def test_numbers_that_yaml_would_change_remember_what_was_written(tmp_path: Path, text: str) -> None:
    value = value_of(tmp_path, "x.yaml", text)
    assert isinstance(value, Unquoted)
    assert value.written == text


@pytest.mark.parametrize("text", ["007", "1_000", "0x1F", "0o17", "2026-03-01", "2026-03-01T10:00:00Z", "9" * 5000])
def test_scalars_that_yaml_takes_for_dates_or_odd_numbers_stay_text(tmp_path: Path, text: str) -> None:
    value = value_of(tmp_path, "x.yaml", text)
    assert (value, type(value)) == (text, UnquotedText)


@pytest.mark.parametrize(
    "text", ["7.6.4", "12:30", "yes", "off", "BILL-482", "=", "<<", "!!str 1.10", "'007'", '"1.10"']
)
def test_scalars_that_are_text_to_yaml_1_2_are_plain_text(tmp_path: Path, text: str) -> None:
    assert type(value_of(tmp_path, "x.yaml", text)) is str


@pytest.mark.parametrize(("text", "value"), [("-3", -3), ("0", 0), ("true", True), ("False", False), ("~", None)])
def test_plain_integers_booleans_and_null_are_what_they_look_like(tmp_path: Path, text: str, value: Any) -> None:
    assert value_of(tmp_path, "x.yaml", text) is value or value_of(tmp_path, "x.yaml", text) == value


def test_an_older_yaml_version_cannot_turn_yes_into_a_boolean(tmp_path: Path) -> None:
    value = value_of(tmp_path, "x.yaml", "%YAML 1.1\n---\n{a: yes, b: no, c: 010, d: 1:30}\n")
    assert value == {"a": "yes", "b": "no", "c": "010", "d": "1:30"}


def test_an_empty_yaml_file_is_null_and_an_empty_json_file_is_refused(tmp_path: Path) -> None:
    assert value_of(tmp_path, "x.yaml", "") is None
    assert value_of(tmp_path, "x.yaml", "# nothing\n") is None
    assert load_sources(written(tmp_path, "x.jsonl", "\n\n")) == []
    assert refusal(tmp_path, "x.json", "") == "x.json:1: not valid JSON: Expecting value (column 1)"


REFUSED = [
    ("x.yaml", "a: 1\nb: 2\na: 3\n", "x.yaml:3: a: key 'a' stands twice; keep one"),
    ("x.yaml", "t:\n  - a: 1\n    a: 2\n", "x.yaml:3: t[0].a: key 'a' stands twice; keep one"),
    ("x.json", '{"a": 1,\n "b": {"c": 1,\n "c": 2}}', "x.json:3: b.c: key 'c' stands twice; keep one"),
    ("x.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n', "x.jsonl:2: a: key 'a' stands twice; keep one"),
    ("x.jsonl", '{"a": 1}\n{"a": \n', "x.jsonl:2: not valid JSON: Expecting value (column 7)"),
    ("x.json", '{"a": 1,\n}', "x.json:2: not valid JSON: Expecting property name enclosed in double quotes (column 1)"),
    ("x.json", '{"a":\n "\\ud800"}', "x.json:1: a: a lone surrogate is no character"),
    ("x.json", '{"a":\n {"\\udfffb": 1}}', "x.json:2: a: a lone surrogate is no character"),
    ("x.yaml", 'a: 1\nb: "\\ud800"\n', "x.yaml:2: b: a lone surrogate is no character"),
    ("x.json", '{"a":\n NaN}', "x.json:1: a: NaN is no finite number"),
    ("x.json", "[1,\n1e999]", "x.json:2: [1]: 1e999 is no finite number"),
    ("x.yaml", "a: 1\nb: -.inf\n", "x.yaml:2: b: -.inf is no finite number"),
    ("x.yaml", "a: [.nan]\n", "x.yaml:1: a[0]: .nan is no finite number"),
    (
        "x.yaml",
        "a:\n\t- b\n",
        "x.yaml:2: not valid YAML: found character '\\t' that cannot start any token; line 2 is indented by a tab; "
        "use spaces",
    ),
    ("x.yaml", "a: 1\n---\nb: 2\n", "x.yaml:2: not valid YAML: but found another document"),
    ("x.yaml", "a: 'x\n", "x.yaml:2: not valid YAML: found unexpected end of stream"),
    ("x.yaml", "a: *b\n", "x.yaml:1: not valid YAML: found undefined alias 'b'"),
    ("x.yaml", "a: 1\n? [b]\n: 2\n", "x.yaml:2: a key must be plain text"),
    ("x.yaml", "a: 1\nb: !thing x\n", "x.yaml:2: b: tag !thing is not supported; remove it"),
    ("x.yaml", "a: !!binary aGk=\n", "x.yaml:1: a: tag tag:yaml.org,2002:binary is not supported; remove it"),
    ("x.yaml", "a: 1\nb: \x01\n", "x.yaml:2: not valid YAML: the character '\\x01' is not allowed; remove it"),
    ("x.yaml", b"a: 1\nb: \xff\n", "x.yaml:2: the file is not UTF-8: invalid start byte; save it as UTF-8"),
    ("x.json", "\ufeff{}".encode("utf-16"), "x.json:1: the file is not UTF-8: invalid start byte; save it as UTF-8"),
]


@pytest.mark.parametrize(("name", "text", "line"), REFUSED)
def test_a_broken_file_is_refused_in_one_line_with_its_place(
    tmp_path: Path, name: str, text: str | bytes, line: str
) -> None:
    assert refusal(tmp_path, name, text) == line


@pytest.mark.parametrize(
    "text", ["[" * 10_000, "{a: " * 10_000, "- " * 10_000, "? " * 10_000, "a: &a [*a]", "[" * 102 + "]" * 102]
)
def test_yaml_that_is_nested_too_deeply_is_refused_at_once(tmp_path: Path, text: str) -> None:
    began = time.monotonic()
    assert "nested too deeply" in refusal(tmp_path, "x.yaml", text)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("depth", [102, 900, 10_000, 100_000])
def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path, depth: int) -> None:
    assert "nested too deeply" in refusal(tmp_path, "x.json", "[" * depth + "]" * depth)


def test_aliases_that_multiply_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "aliases multiply without end" in refusal(tmp_path, "x.yaml", "\n".join(levels))


def test_a_few_aliases_are_fine(tmp_path: Path) -> None:
    assert value_of(tmp_path, "x.yaml", "a: &a {b: [1]}\nc: [*a, *a]\n") == {"a": {"b": [1]}, "c": [{"b": [1]}] * 2}


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(UsageError, match=r"missing\.yaml: the file does not exist; check the path$"):
        read_text(tmp_path / "missing.yaml")
    for path in (tmp_path, tmp_path / "pipe.yaml", Path("/dev/zero")):
        with pytest.raises(UsageError, match="the file is not a regular file"):
            read_text(path)
    with pytest.raises(UsageError, match=r"embedded null byte|does not exist"):
        read_text(Path("a\0b"))


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(UsageError, match="larger than 64 MiB"):
        load_sources(path)


def test_where_one_document_is_needed_several_or_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds 2 documents instead of one"):
        load_source(written(tmp_path, "x.jsonl", "{}\n{}\n"))
    with pytest.raises(UsageError, match="holds 0 documents instead of one"):
        load_source(written(tmp_path, "x.jsonl", ""))


def test_the_nearest_name_is_offered_and_else_all_of_them() -> None:
    assert nearest("promt", ["prompt", "id"]) == "did you mean 'prompt'?"
    assert nearest("zzz", ["prompt", "id"]) == "known here: id, prompt"
    assert nearest("zzz", []) is None
    many = nearest("zzz", [f"task-{number:04}" for number in range(5000)])
    assert many == f"known here: {', '.join(f'task-{number:04}' for number in range(20))} and 4980 more"


@settings(deadline=None, max_examples=50)
@given(value=JSON, indent=st.sampled_from([None, 2]), ascii_only=st.booleans())
def test_json_comes_back_as_it_was_written_and_each_part_has_a_line(
    tmp_path_factory: pytest.TempPathFactory, value: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    source = load_source(written(tmp_path_factory.mktemp("json"), "x.json", text))
    assert source.value == value
    assert set(source.lines) == set(places(value, ()))
    assert max(source.lines.values()) <= text.count("\n") + 1


def places(value: Any, key: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [key, *(place for name, item in inner for place in places(item, (*key, name)))]


@settings(deadline=None, max_examples=50)
@given(text=st.text(max_size=60), name=st.sampled_from(["x.yaml", "x.json", "x.jsonl"]))
def test_any_text_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = written(folder, name, text.encode("utf-8", "surrogatepass"))
    try:
        line = f"{path}: {len(load_sources(path))}"
    except UsageError as exc:
        line = str(exc)
    assert line.startswith(str(path))
    assert "\n" not in line
