"""Adaptation of one input schema to a provider's dialect: what was changed where, and what no change can mend.

Schemas come from servers and may be hostile: the walk is bounded in depth and in size, also where references multiply.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcptrials.dialect.keyword import type_faults
from mcptrials.dialect.providers import Dialect
from mcptrials.dialect.reference import is_plain, resolve
from mcptrials.dialect.rules import inherits

MAX_DEPTH = 48
"""Schemas within schemas; providers refuse far fewer."""
MAX_NODES = 10_000
"""Schemas in one tool, counted after references were written out."""
MAX_OBSTACLES = 20
ROUNDS = 2
"""What one rule lifts from alternatives may be for another to change."""
_SHOWN = 400
_PART_OF_ALL = re.compile(r"\.allOf\[\d+\]\Z")
_NOTHING: Any = object()
"""In place of an inner schema that is to be left out."""

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset(
    {"items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"}
    | {"unevaluatedItems", "unevaluatedProperties", "contentSchema"}
)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One change of one schema."""

    rule: str
    path: str
    before: Any
    """The keys concerned as they were; a text where they are long."""
    after: Any


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the provider would refuse the schema whatever is changed."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Adapted:
    """A schema as the provider is sent it."""

    schema: Any
    rewrites: tuple[Rewrite, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


def adapt(schema: Any, dialect: Dialect) -> Adapted:
    """`schema` in `dialect`; the same object if nothing has to change."""
    if not dialect.adapts:
        return Adapted(schema)
    walk = _Walk(schema, dialect)
    try:
        adapted = walk.schema(schema, "$", (), 0)
    except _Unbounded as exc:
        return Adapted(schema, (), (Obstacle(exc.path, exc.what),))
    return Adapted(adapted if walk.rewrites else schema, tuple(walk.rewrites), tuple(walk.obstacles))


class _Unbounded(Exception):  # noqa: N818 - it ends the walk
    def __init__(self, path: str, what: str) -> None:
        super().__init__(what)
        self.path, self.what = path, what


class _Walk:
    """One pass over one schema: references first, then the inner schemas, then the rules of the outer one."""

    def __init__(self, root: Any, dialect: Dialect) -> None:
        self._root, self._dialect = root, dialect
        self.rewrites: list[Rewrite] = []
        self.obstacles: list[Obstacle] = []
        self._nodes = 0

    def schema(self, node: Any, path: str, trail: tuple[str, ...], depth: int) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            what = f"is nested deeper than {MAX_DEPTH} schemas" if depth > MAX_DEPTH else f"has over {MAX_NODES} parts"
            written_out = "" if self._dialect.inline == "none" else " once references are written out"
            raise _Unbounded(path, what + written_out)
        if isinstance(node, bool):
            return self._boolean(node, path)
        if not isinstance(node, Mapping):
            self._refuse(path, f"is no schema but {node!r:.60}")
            return node
        node, trail = self._followed(node, path, trail)
        node = self._inherited(node, path)
        # Beside one schema for all items it says nothing (draft 7, 6.4.2), and in 2020-12 it is no keyword at all.
        said = {key for key in node if key != "additionalItems" or isinstance(node.get("items"), list)}
        node = {
            key: self._inner(key, value, f"{path}.{key}", trail, depth + 1) if key in said else value
            for key, value in node.items()
        }
        return self._ruled(node, path)

    def _inherited(self, node: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """The schema with a type in those of its alternatives whose keywords want one: its own."""
        if not self._dialect.typed or "type" not in node:
            return node
        changed = dict(node)
        for key in ("anyOf", "oneOf"):
            if isinstance(branches := node.get(key), list):
                changed[key] = [
                    self._with_type(each, node["type"], f"{path}.{key}[{n}]") for n, each in enumerate(branches)
                ]
        return changed

    def _with_type(self, branch: Any, kind: Any, path: str) -> Any:
        if not isinstance(branch, Mapping) or "$ref" in branch or not inherits(branch):
            return branch
        self.rewrites.append(Rewrite("inherit_type", path, {}, {"type": kind}))
        return {"type": kind, **branch}

    def _inner(self, key: str, value: Any, path: str, trail: tuple[str, ...], depth: int) -> Any:
        if key in ("$defs", "definitions") and self._dialect.inline == "all":
            return value  # what is used of them is written out where it is used
        if key == "dependencies" and isinstance(value, Mapping):  # of each name other names, or a schema (draft-07)
            kept = {name: each for name, each in value.items() if isinstance(each, list)}
            schemas = {name: each for name, each in value.items() if name not in kept}
            return kept | self._inner("dependentSchemas", schemas, path, trail, depth)
        if key in _NAMED and isinstance(value, Mapping):
            inner = ((name, self.schema(each, f"{path}.{name}", trail, depth)) for name, each in value.items())
            return {name: each for name, each in inner if each is not _NOTHING}
        if (key in _LISTED or key == "items") and isinstance(value, list):
            parts = [self.schema(each, f"{path}[{index}]", trail, depth) for index, each in enumerate(value)]
            return [each for each in parts if each is not _NOTHING]
        if key not in _SINGLE or (isinstance(value, bool) and key != "items"):
            return value
        single = self.schema(value, path, trail, depth)
        return {} if single is _NOTHING else single

    def _boolean(self, value: bool, path: str) -> Any:
        """`true` says nothing, and `false` that there is no such thing."""
        if self._dialect.booleans:
            return value
        self.rewrites.append(Rewrite("boolean_schema", path, value, {} if value else None))
        return {} if value else _NOTHING

    def _followed(
        self, node: Mapping[str, Any], path: str, trail: tuple[str, ...]
    ) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The schema with its reference written out, where the dialect needs that; a recursive one ends in its type."""
        while "$ref" in node:
            ref = node["$ref"]
            try:
                target = resolve(self._root, ref)
            except LookupError as exc:
                self._refuse(path, f"has a $ref {ref!r:.80} that {exc}")
                return node, trail
            if self._dialect.inline == "none" or (self._dialect.inline == "odd" and is_plain(ref)):
                return node, trail
            target = target if isinstance(target, Mapping) else {}
            beside = {key: value for key, value in node.items() if key != "$ref"}
            recursive = ref in trail
            if recursive:
                target = {key: target[key] for key in ("type", "description") if key in target}
            rule = "recursive_ref" if recursive else "inline_ref"
            self.rewrites.append(Rewrite(rule, path, {"$ref": ref}, _brief(target)))
            node, trail = {**target, **beside}, (*trail, ref)
        return node, trail

    def _ruled(self, node: dict[str, Any], path: str) -> dict[str, Any]:
        for fault in type_faults(node):
            self._refuse(path, fault)
        for rule in self._dialect.rules * ROUNDS:
            if (rule.root_only and path != "$") or (rule.alone and _PART_OF_ALL.search(path)):
                continue
            changed = rule.rewrite(node)
            if changed is not node:
                self.rewrites.append(_rewrite(rule.name, path, node, changed))
                node = changed
        for check in self._dialect.checks:
            for fault in check(node, path == "$"):
                self._refuse(path, fault)
        return node

    def _refuse(self, path: str, what: str) -> None:
        if len(self.obstacles) < MAX_OBSTACLES:
            self.obstacles.append(Obstacle(path, what))


def _rewrite(rule: str, path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Rewrite:
    changed = tuple(_differing(before, after))
    was = {key: before[key] for key in changed if key in before}
    now = {key: after[key] for key in changed if key in after}
    return Rewrite(rule, path, _brief(was), _brief(now))


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in {**before, **after}:
        if key not in before or key not in after or before[key] is not after[key]:
            yield key


def _brief(value: Any) -> Any:
    """The value if it is short; else the beginning of its text, of which no more is written than is shown."""
    text = ""
    for chunk in json.JSONEncoder().iterencode(value):
        text += chunk
        if len(text) > _SHOWN:
            return f"{text[:_SHOWN]}..."
    return value
