"""YAML 1.2 texts as Sources, read by `ruamel.yaml`.

Scalars whose meaning YAML would change silently (`1.10`, `007`, dates) come back as `Unquoted` or `UnquotedText`, which
remember what was written.
"""

import math
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from mcptrials.errors import UsageError
from mcptrials.source.document import MAX_DEPTH, TOO_DEEP, Keys, Source, Unquoted, UnquotedText, characters, dotted

_MAX_NODES = 200_000
_MAX_DIGITS = 60
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_TAG = "tag:yaml.org,2002:"


def yaml_source(path: Path, text: str) -> Source:
    """The one document of a YAML text.

    Raises:
        UsageError: it cannot be parsed; names `path` and the line.
    """
    reader = _YamlReader(path)
    try:
        _refuse_deep_flow(text)
        root = YAML(typ="safe", pure=True).compose(text)
        value = None if root is None else reader.value(root, ())
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        tabs = re.search(r"^ *\t", text, re.MULTILINE)
        hint = f"line {text.count(chr(10), 0, tabs.start()) + 1} is indented by a tab; use spaces" if tabs else None
        raise UsageError(f"not valid YAML: {exc.problem or exc.context}", where=where, hint=hint) from exc
    except ReaderError as exc:
        where = f"{path}:{text.count(chr(10), 0, exc.position) + 1}"
        what = f"not valid YAML: the character {chr(exc.character)!r} is not allowed"
        raise UsageError(what, where=where, hint="remove it") from exc
    except RecursionError as exc:
        raise UsageError(TOO_DEEP, where=str(path)) from exc
    except (YAMLError, ValueError) as exc:
        raise UsageError(f"not valid YAML: {' '.join(str(exc).split())}", where=str(path)) from exc
    return Source(path, value, reader.lines)


def _refuse_deep_flow(text: str) -> None:
    """The parser takes quadratic time over brackets that are never closed."""
    depth = 0
    for match in re.finditer(r"[\[\]{}]", text):
        depth = max(depth + (1 if match.group() in "[{" else -1), 0)
        if depth > 10 * MAX_DEPTH:
            raise RecursionError


class _YamlReader:
    """Plain values of the nodes of a YAML document, with the line of every key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Keys, int] = {}

    def refused(self, node: Node, key: Keys, what: str, hint: str | None = None) -> UsageError:
        place = f"{self.path}:{node.start_mark.line + 1}"
        return UsageError(what, where=f"{place}: {dotted(key)}" if key else place, hint=hint)

    def value(self, node: Node, key: Keys) -> Any:
        self.lines.setdefault(key, node.start_mark.line + 1)
        if len(key) > MAX_DEPTH or len(self.lines) > _MAX_NODES:
            raise self.refused(node, key[:3], TOO_DEEP)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*key, index)) for index, item in enumerate(node.value)]
        if isinstance(node, MappingNode):
            return self.mapping(node, key)
        return self.scalar(node, key)

    def mapping(self, node: MappingNode, key: Keys) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for name_node, item in node.value:
            if not isinstance(name_node, ScalarNode):
                raise self.refused(name_node, key, "a key must be plain text")
            name = self.text(name_node, key)
            if name in value:
                raise self.refused(name_node, (*key, name), f"key {name!r} stands twice", "keep one")
            self.lines[(*key, name)] = name_node.start_mark.line + 1
            value[name] = self.value(item, (*key, name))
        return value

    def scalar(self, node: Node, key: Keys) -> Any:
        written, tag = node.value, str(node.tag).removeprefix(_TAG)
        if tag == "null":
            return None
        if tag in ("str", "value", "merge"):
            return self.text(node, key)
        if tag == "bool" and written.lower() in ("true", "false"):
            return written.lower() == "true"
        if tag == "float":
            return self.number(node, key)
        if tag == "int" and _PLAIN_INTEGER.fullmatch(written) and len(written) <= _MAX_DIGITS:
            return int(written)
        if tag in ("bool", "int", "timestamp"):
            return UnquotedText(written)
        raise self.refused(node, key, f"tag {node.tag!s} is not supported", "remove it")

    def text(self, node: Node, key: Keys) -> str:
        try:
            return characters(node.value)
        except ValueError as exc:
            raise self.refused(node, key, str(exc)) from exc

    def number(self, node: Node, key: Keys) -> Any:
        plain = node.value.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan")
        try:
            number = float(plain)
        except ValueError:
            return UnquotedText(node.value)
        if not math.isfinite(number):
            raise self.refused(node, key, f"{node.value} is no finite number")
        return Unquoted(number, node.value)
