"""A user's YAML, JSON or JSONL file as plain values, with the line of every key for error messages.

JSON is read by `json` (the YAML reader splits surrogate pairs), YAML 1.2 by `ruamel.yaml`. Scalars whose meaning YAML
would change silently (`1.10`, `007`, dates) come back as `Unquoted`, which remembers what was written.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.decoder import JSONDecodeError, JSONDecoder, scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from mcptrials.errors import UsageError

Key = str | int
_MAX_BYTES = 64 << 20
_MAX_DEPTH, _MAX_NODES = 100, 200_000
_SHOWN = 60
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_TAG = "tag:yaml.org,2002:"


class Unquoted(float):
    """A plain scalar that is a number to YAML or JSON, with the text as written."""

    written: str

    def __new__(cls, number: float, written: str) -> "Unquoted":
        self = super().__new__(cls, number)
        self.written = written
        return self


class UnquotedText(str):
    """A plain scalar that older YAML takes for a date or an octal number, kept as the text that was written."""

    __slots__ = ()


@dataclass(frozen=True)
class Source:
    """One document of a user's file: its value, and where each part of it stands."""

    path: Path
    value: Any
    lines: Mapping[tuple[Key, ...], int]
    """1-based line of each key and list item, by its path inside `value`."""

    def where(self, key: Sequence[Key] = ()) -> str:
        """`file:line: key` of the deepest part of `key` that exists."""
        key = tuple(key)
        known = key
        while known and known not in self.lines:
            known = known[:-1]
        line = self.lines.get(known)
        place = f"{self.path}:{line}" if line else str(self.path)
        return f"{place}: {dotted(key)}" if key else place


def dotted(key: Iterable[Key]) -> str:
    """A path of keys as a person writes it: `servers.tracker.args[0]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".")


def load_sources(path: Path) -> list[Source]:
    """The documents of a file: one for YAML and JSON, one per line for JSONL.

    Raises:
        UsageError: the file cannot be read or parsed; names file and line.
    """
    text = read_text(path)
    if path.suffix == ".jsonl":
        rows = enumerate(text.split("\n"), 1)
        return [_json_source(path, row, number) for number, row in rows if row.strip()]
    if path.suffix == ".json":
        return [_json_source(path, text, 1)]
    return [_yaml_source(path, text)]


def read_text(path: Path) -> str:
    """A user's text file.

    Raises:
        UsageError: missing, no regular file, too large, or not UTF-8.
    """
    try:
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise UsageError(f"the file {what}", where=str(path), hint="check the path")
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError("the file is larger than 64 MiB", where=str(path), hint="split it")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as exc:
        raise UsageError(f"cannot read the file: {exc.strerror or exc}", where=str(path)) from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"the file is not UTF-8: {exc}", where=str(path), hint="save it as UTF-8") from exc


def _json_source(path: Path, text: str, first_line: int) -> Source:
    try:
        value = json.loads(
            text,
            parse_float=lambda written: Unquoted(float(written), written),
            parse_constant=_refuse_constant,
            object_pairs_hook=_no_duplicate_keys,
        )
    except JSONDecodeError as exc:
        where = f"{path}:{first_line + exc.lineno - 1}"
        raise UsageError(f"not valid JSON: {exc.msg} (column {exc.colno})", where=where) from exc
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"not valid JSON: {exc}", where=f"{path}:{first_line}") from exc
    lines: dict[tuple[Key, ...], int] = {(): first_line}
    _JsonLines(text, first_line, lines).walk(0, ())
    return Source(path, value, lines)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _no_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(f"key {key!r} stands twice in one object")
        value[key] = item
    return value


class _JsonLines:
    """Notes the line of every key and item of a JSON text that is known to be valid."""

    _SPACE = re.compile(r"[ \t\r\n]*")

    def __init__(self, text: str, first_line: int, lines: dict[tuple[Key, ...], int]) -> None:
        self.text, self.first_line, self.lines = text, first_line, lines
        self.decoder = JSONDecoder()
        self.seen, self.line = 0, first_line

    def skip(self, position: int) -> int:
        match = self._SPACE.match(self.text, position)
        return match.end() if match else position

    def note(self, key: tuple[Key, ...], position: int) -> None:
        self.line += self.text.count("\n", self.seen, position)
        self.seen = position
        self.lines[key] = self.line

    def walk(self, position: int, key: tuple[Key, ...]) -> int:
        position = self.skip(position)
        opening = self.text[position]
        if opening not in "{[":
            return int(self.decoder.raw_decode(self.text, position)[1])
        position, index, closing = self.skip(position + 1), 0, "}" if opening == "{" else "]"
        while self.text[position] != closing:
            inner: tuple[Key, ...] = (*key, index)
            start = position
            if opening == "{":
                name, position = scanstring(self.text, position + 1)
                inner = (*key, name)
                position = self.skip(position) + 1
            self.note(inner, start)
            position = self.skip(self.walk(position, inner))
            index += 1
            if self.text[position] == ",":
                position = self.skip(position + 1)
        return position + 1


def _yaml_source(path: Path, text: str) -> Source:
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
        lines: dict[tuple[Key, ...], int] = {}
        value = None if root is None else _yaml_value(root, (), lines, path, 0)
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise UsageError(f"not valid YAML: {exc.problem or exc.context}", where=where) from exc
    except (YAMLError, ValueError, RecursionError) as exc:
        raise UsageError(f"not valid YAML: {' '.join(str(exc).split())}", where=str(path)) from exc
    return Source(path, value, lines)


def _yaml_value(node: Node, key: tuple[Key, ...], lines: dict[tuple[Key, ...], int], path: Path, depth: int) -> Any:
    lines.setdefault(key, node.start_mark.line + 1)
    if depth > _MAX_DEPTH or len(lines) > _MAX_NODES:
        raise ValueError("nested too deeply, or aliases multiply without end")
    if isinstance(node, SequenceNode):
        return [_yaml_value(item, (*key, i), lines, path, depth + 1) for i, item in enumerate(node.value)]
    if isinstance(node, MappingNode):
        return _yaml_mapping(node, key, lines, path, depth)
    if isinstance(node, ScalarNode):
        return _yaml_scalar(node)
    raise ValueError(f"line {node.start_mark.line + 1} holds no value")


def _yaml_mapping(
    node: MappingNode, key: tuple[Key, ...], lines: dict[tuple[Key, ...], int], path: Path, depth: int
) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name_node, item in node.value:
        name = name_node.value if isinstance(name_node, ScalarNode) else None
        line = name_node.start_mark.line + 1
        if name is None:
            raise UsageError("a key must be plain text", where=f"{path}:{line}")
        if name in value:
            raise UsageError(f"key {name!r} stands twice", where=f"{path}:{line}", hint="keep one")
        lines[(*key, name)] = line
        value[name] = _yaml_value(item, (*key, name), lines, path, depth + 1)
    return value


def _yaml_scalar(node: ScalarNode) -> Any:
    written, tag = node.value, str(node.tag).removeprefix(_TAG)
    if tag == "null":
        return None
    if tag == "bool":
        return written.lower() == "true"
    if tag == "int":
        return int(written) if _PLAIN_INTEGER.fullmatch(written) else UnquotedText(written)
    if tag == "float":
        return Unquoted(float(written.replace("_", "").replace(".inf", "inf").replace(".nan", "nan")), written)
    if tag == "timestamp":
        return UnquotedText(written)
    if tag != "str":
        raise ValueError(f"tag {node.tag!s} is not supported (line {node.start_mark.line + 1})")
    return written


def explain(source: Source, error: ValidationError, at: Sequence[Key] = ()) -> UsageError:
    """The first problem that pydantic found, as one line with file, line, key and the nearest valid name."""
    problem = min(error.errors(include_url=False), key=lambda found: found["type"] == "missing")
    key = (*at, *problem["loc"])
    what, hint = problem["msg"].removeprefix("Value error, "), None
    if problem["type"] == "unknown_key":
        context = problem["ctx"]
        key, what = (*key, context["key"]), f"unknown key {context['key']!r}"
        hint = nearest(str(context["key"]), context["known"])
    elif problem["type"] == "missing":
        what, key = f"key {str(key[-1])!r} is missing", key[:-1]
    elif not isinstance(problem.get("input"), dict | list | None):
        what = f"{what}, not {_shown(problem['input'])}"
    return UsageError(what, where=source.where(key), hint=hint)


def _shown(value: Any) -> str:
    text = value.written if isinstance(value, Unquoted) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` for the closest known name; else the list of them."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known here: {', '.join(names)}" if names else None
