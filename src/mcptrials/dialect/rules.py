"""Rules: small rewrites of one schema, each for something that a provider refuses.

A rule gives back the same object when it has nothing to change; inner schemas are already rewritten when it is asked.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcptrials.dialect.keyword import keyword_faults
from mcptrials.dialect.reference import resolve

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rewrite."""

    name: str
    rewrite: Callable[[Node], Node]
    root_only: bool = False
    alone: bool = False
    """Not for a part of `allOf`, which is no schema of its own once it is merged."""


_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_GEMINI_KEYS = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "default", "example", "propertyOrdering"}
    | {"items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties"}
    | {"minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf"}
)
_KINDS_OF: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("properties", "required", "minProperties", "maxProperties", "propertyOrdering"), ("object",)),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems"), ("array",)),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), ("string",)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), ("number", "integer")),
}
"""Keywords that Gemini takes beside these types only."""
_FORMATS_OF: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("enum", "date-time"), ("string",)),
    **dict.fromkeys(("int32", "int64"), ("integer",)),
    **dict.fromkeys(("float", "double"), ("number",)),
}


def _without(node: Node, *keys: str) -> Node:
    return {key: value for key, value in node.items() if key not in keys}


def _types(node: Mapping[str, Any]) -> tuple[Any, ...]:
    kind = node.get("type")
    return tuple(kind) if isinstance(kind, list) else (kind,)


# --- The root --------------------------------------------------------------------------------------------------------


def _merge_root(*dropped: str) -> Callable[[Node], Node]:
    def merge(node: Node) -> Node:
        found = [key for key in dropped if key in node]
        if not found:
            return node
        merged = _without(node, *found)
        for key in ("allOf", "anyOf", "oneOf"):
            if key in found:
                merged = _joined(merged, _branches(node, node[key]), all_hold=key == "allOf")
        return merged

    return merge


def _branches(root: Node, value: Any) -> list[Mapping[str, Any]]:
    found = []
    for branch in value if isinstance(value, list) else ():
        target = branch
        if isinstance(branch, Mapping) and "$ref" in branch:
            try:
                target = resolve(root, branch["$ref"])
            except LookupError:
                continue
        if isinstance(target, Mapping):
            found.append(target)
    return found


def _names(value: Any) -> dict[str, None]:
    """The texts of a list, in order, each once."""
    return {name: None for name in value if isinstance(name, str)} if isinstance(value, list) else {}


def _joined(node: Node, branches: list[Mapping[str, Any]], *, all_hold: bool) -> Node:
    """The node with the properties of its branches; what a branch requires is required only if all of them hold."""
    joined, properties, required = dict(node), node.get("properties"), node.get("required")
    properties = dict(properties) if isinstance(properties, Mapping) else {}
    required = _names(required)
    for branch in branches:
        held, needed = branch.get("properties"), branch.get("required")
        for name, schema in held.items() if isinstance(held, Mapping) else ():
            properties.setdefault(name, schema)
        if all_hold:
            required |= _names(needed)
            for key, value in branch.items():
                if key not in ("properties", "required", "allOf", "$ref"):
                    joined.setdefault(key, value)
    grown = {"properties": properties, "required": list(required)}
    return joined | {key: value for key, value in grown.items() if value and value != node.get(key)}


def _add_properties(node: Node) -> Node:
    no_object = "object" not in _types(node) and ("type" in node or "anyOf" in node)
    return node if no_object or isinstance(node.get("properties"), Mapping) else {**node, "properties": {}}


def _new_draft_only(node: Node) -> Node:
    return _without(node, "$schema") if "2020-12" not in str(node.get("$schema", "2020-12")) else node


MERGE_ROOT = Rule("merge_root", _merge_root("allOf", "anyOf", "oneOf", "enum", "not"), root_only=True)
MERGE_ROOT_COMPOSITION = Rule("merge_root", _merge_root("allOf", "anyOf", "oneOf"), root_only=True)
ADD_PROPERTIES_AT_ROOT = Rule("add_properties", _add_properties, root_only=True)
NEW_DRAFT_ONLY = Rule("drop_schema_uri", _new_draft_only, root_only=True)


# --- Arrays ----------------------------------------------------------------------------------------------------------


def _add_items(node: Node) -> Node:
    return {**node, "items": {}} if "array" in _types(node) and "items" not in node else node


def _one_items(node: Node) -> Node:
    """One schema for all items: any of those that stood for single places."""
    listed = node["items"] if isinstance(node.get("items"), list) else node.get("prefixItems")
    if isinstance(listed, list):
        kinds = [each for each in listed if isinstance(each, Mapping)]
        single = dict(kinds[0]) if len(kinds) == 1 else _one_type(_no_empty_alternatives({"anyOf": kinds}))
        return {**_without(node, "prefixItems"), "items": single}
    return _add_items(node)


def _tuple_as_prefix(node: Node) -> Node:
    if not isinstance(node.get("items"), list):
        return node
    rest = {"items": node["additionalItems"]} if "additionalItems" in node else {}
    first = {"prefixItems": node["items"]} if node["items"] else {}  # a list of none says nothing, and may not be
    return {**_without(node, "items", "additionalItems"), **first, **rest}


ADD_ITEMS = Rule("add_items", _add_items)
ADD_ITEMS_OR_FIRST = Rule("one_items", _one_items)
TUPLE_AS_PREFIX = Rule("prefix_items", _tuple_as_prefix)


# --- Types and values ------------------------------------------------------------------------------------------------


def _one_type(node: Node) -> Node:
    """`nullable` for null; several other types become alternatives."""
    alternatives = node.get("anyOf")
    if isinstance(alternatives, list) and any(_is_null(each) for each in alternatives):
        node = _nullable(node, [each for each in alternatives if not _is_null(each)])
    if not isinstance(node.get("type"), list):
        return node
    kinds = [kind for kind in node["type"] if kind != "null"]
    null = {"nullable": True} if len(kinds) < len(node["type"]) else {}
    if len(kinds) == 1:
        return {**node, "type": kinds[0], **null}
    if "anyOf" in node or not kinds:
        return {**_without(node, "type"), **null}
    split = [_of_kind(node, kind) for kind in kinds]
    return {**_without(node, "type", "enum", *_owned(node)), "anyOf": split, **null}


def _owned(node: Node) -> list[str]:
    """The keywords that go with some types only; one that means nothing stays where it is found to be wrong."""
    return [
        key
        for key, value in node.items()
        if (key == "format" or key in _KINDS_OF) and not any(keyword_faults({key: value}, root=False))
    ]


def _kinds_of(node: Node, key: str) -> tuple[str, ...]:
    return _FORMATS_OF.get(str(node[key]), ()) if key == "format" else _KINDS_OF[key]


def _of_kind(node: Node, kind: str) -> Node:
    """What a schema says of one of its types."""
    own = {key: node[key] for key in _owned(node) if kind in _kinds_of(node, key)}
    enum = {"enum": node["enum"]} if kind == "string" and "enum" in node else {}
    return _text_enums(_one_items({"type": kind, **own, **enum}))


def _implied_type(node: Node) -> Node:
    """The type that the keywords are for, where none is named; alternatives have their own."""
    owned = _owned(node)
    if "type" in node or "enum" in node or not owned:
        return node
    if isinstance(node.get("anyOf"), list):
        return _in_alternatives(node, owned)
    kinds = list(dict.fromkeys(_kinds_of(node, key)[0] for key in owned if _kinds_of(node, key)))
    if len(kinds) > 1:
        return _one_type({**node, "type": kinds})
    return {"type": kinds[0], **node} if kinds else _without(node, *owned)


def _in_alternatives(node: Node, owned: list[str]) -> Node:
    """What stands beside alternatives: their own if it is small, else, for it would multiply, the type of them all."""
    held = [_KINDS_OF[key][0] for key in owned if key in _KINDS_OF and isinstance(node[key], Mapping | list)]
    branches = [each for each in node["anyOf"] if isinstance(each, Mapping)]
    if held:
        fitting = [each for each in branches if each.get("type", held[0]) == held[0]]
        return {"type": held[0], **_without(node, "anyOf"), **({"anyOf": fitting} if fitting else {})}
    moved = [
        {**{key: node[key] for key in owned if each.get("type") in _kinds_of(node, key)}, **each} for each in branches
    ]
    return {**_without(node, *owned), "anyOf": moved}


def _fitting(node: Node) -> Node:
    """Without the keywords that the type does not take."""
    if not isinstance(node.get("type"), str):
        return node
    strange = [key for key in _owned(node) if node["type"] not in _kinds_of(node, key)]
    return _without(node, *strange) if strange else node


def inherits(node: Mapping[str, Any]) -> bool:
    """Whether an alternative without a type has that of what it is an alternative of: its keywords want one."""
    return "type" not in node and any(key in _KINDS_OF or key == "format" for key in node)


def _is_null(node: Any) -> bool:
    return isinstance(node, Mapping) and node.get("type") == "null"


def _nullable(node: Node, rest: list[Any]) -> Node:
    outer = _without(node, "anyOf")
    if len(rest) == 1 and isinstance(rest[0], Mapping):
        return {**rest[0], **outer, "nullable": True}
    return {**outer, **({"anyOf": rest} if rest else {}), "nullable": True}


def _const_as_enum(node: Node) -> Node:
    if "const" not in node:
        return node
    kind = {} if "type" in node or not isinstance(node["const"], str) else {"type": "string"}
    return {**_without(node, "const"), **kind, "enum": [node["const"]]}


def _text_enums(node: Node) -> Node:
    """Only texts, not empty, of a string; what is allowed besides is not said any more."""
    if "enum" not in node:
        return node
    values = node["enum"] if isinstance(node["enum"], list) else []
    texts = [each for each in values if isinstance(each, str) and each]
    null = {"nullable": True} if None in values else {}
    others = any(each is not None and not isinstance(each, str) for each in values)
    if not texts or others or node.get("type", "string") != "string":
        return {**_without(node, "enum"), **null}
    if len(texts) == len(values) and "type" in node:
        return node
    return {**node, "type": "string", "enum": texts, **null}


def _inclusive(node: Node) -> Node:
    """Exclusive bounds as inclusive ones: one further for integers; for other numbers the bound itself is let in."""
    changed = node
    for exclusive, inclusive, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        if exclusive not in changed:
            continue
        bound = changed[exclusive]
        changed = _without(changed, exclusive)
        if isinstance(bound, bool):
            bound = changed.get(inclusive) if bound else None
        kinds = _types(changed)
        whole = "integer" in kinds and "number" not in kinds and isinstance(bound, int)
        if isinstance(bound, int | float):
            changed = {**changed, inclusive: bound + step if whole else bound}
    return changed


def _numeric_exclusive(node: Node) -> Node:
    changed = node
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(flag := changed.get(exclusive), bool):
            bound = changed.get(inclusive)
            changed = _without(changed, exclusive)
            if flag and bound is not None:
                changed = {**_without(changed, inclusive), exclusive: bound}
    return changed


def _known_formats(node: Node) -> Node:
    return _without(node, "format") if "format" in node and str(node["format"]) not in _FORMATS_OF else node


def _anchored_patterns(node: Node) -> Node:
    pattern = node.get("pattern")
    loose = isinstance(pattern, str) and not (pattern.startswith("^") and pattern.endswith("$"))
    return _without(node, "pattern") if loose else node


ONE_TYPE = Rule("one_type", _one_type)
IMPLIED_TYPE = Rule("implied_type", _implied_type, alone=True)
FITTING_KEYWORDS = Rule("drop_misplaced", _fitting)
CONST_AS_ENUM = Rule("const", _const_as_enum)
TEXT_ENUMS = Rule("text_enum", _text_enums)
INCLUSIVE_BOUNDS = Rule("inclusive_bounds", _inclusive)
NUMERIC_EXCLUSIVE_BOUNDS = Rule("numeric_bounds", _numeric_exclusive)
KNOWN_FORMATS = Rule("drop_format", _known_formats)
ANCHORED_PATTERNS = Rule("drop_pattern", _anchored_patterns)


# --- Objects and compositions ----------------------------------------------------------------------------------------


def _required_list(node: Node) -> Node:
    required = node.get("required", [])
    listed = isinstance(required, list) and all(isinstance(name, str) for name in required)
    return node if listed else _without(node, "required")


def _required_defined(node: Node) -> Node:
    required, properties = node.get("required"), node.get("properties")
    if not isinstance(required, list):
        return node
    known = [name for name in required if isinstance(properties, Mapping) and name in properties]
    if len(known) == len(required):
        return node
    return {**node, "required": known} if known else _without(node, "required")


def _merge_all_of(node: Node) -> Node:
    if "allOf" not in node:
        return node
    branches = [each for each in node["allOf"] if isinstance(each, Mapping)] if isinstance(node["allOf"], list) else []
    return _joined(_without(node, "allOf"), branches, all_hold=True)


def _one_of(node: Node) -> Node:
    if "oneOf" not in node:
        return node
    both = [each for key in ("anyOf", "oneOf") if isinstance(node.get(key), list) for each in node[key]]
    return {**_without(node, "oneOf", "anyOf"), "anyOf": both}


def _no_empty_alternatives(node: Node) -> Node:
    """Alternatives of which one says nothing say nothing."""
    alternatives = node.get("anyOf")
    nothing: tuple[Node, ...] = ({}, {"type": node.get("type")})
    empty = isinstance(alternatives, list) and (not alternatives or any(each in nothing for each in alternatives))
    return _without(node, "anyOf") if empty else node


def _gemini_keys(node: Node) -> Node:
    return {key: node[key] for key in node if key in _GEMINI_KEYS} if node.keys() - _GEMINI_KEYS else node


def _examples_list(node: Node) -> Node:
    return node if isinstance(node.get("examples", []), list) else {**node, "examples": [node["examples"]]}


EXAMPLES_ARE_A_LIST = Rule("examples_list", _examples_list)
REQUIRED_IS_A_LIST = Rule("required_list", _required_list)
REQUIRED_IS_DEFINED = Rule("required_defined", _required_defined)
MERGE_ALL_OF = Rule("merge_all_of", _merge_all_of)
ONE_OF_AS_ANY_OF = Rule("any_of", _one_of)
NO_EMPTY_ALTERNATIVES = Rule("drop_any_of", _no_empty_alternatives)
GEMINI_KEYS_ONLY = Rule("drop_keywords", _gemini_keys)


# --- What cannot be mended -------------------------------------------------------------------------------------------


def anthropic_keys(node: Mapping[str, Any], root: bool) -> Iterator[str]:
    """Names of arguments, which cannot be changed without changing the tool."""
    properties = node.get("properties")
    for name in properties if root and isinstance(properties, Mapping) else ():
        if not _KEY.fullmatch(name):
            yield f"has an argument {name!r:.80}; only 1 to 64 letters, digits and _ . - are taken"
