"""Keywords: whether the values of a schema's keywords are of the kind that JSON Schema 2020-12 asks for.

The same as its metaschema, which a validator takes seconds for where a server is generous.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_choice(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _maps_to_names(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_are_names, value.values()))


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "a whole number, not negative": (_is_count, "minLength maxLength minItems maxItems minProperties maxProperties"),
    "a whole number, not negative ": (_is_count, "minContains maxContains"),
    "a number": (_is_number, "minimum maximum exclusiveMinimum exclusiveMaximum"),
    "a number above 0": (lambda value: _is_number(value) and value > 0, "multipleOf"),
    "a text": (_is_text, "pattern format title description $comment $schema contentEncoding contentMediaType"),
    "true or false": (_is_flag, "uniqueItems deprecated readOnly writeOnly"),
    "a list": (_is_list, "enum examples"),
    "a list of different names": (_are_names, "required"),
    "a mapping of lists of names": (_maps_to_names, "dependentRequired"),
    "a list of schemas, not empty": (_is_choice, "anyOf oneOf allOf prefixItems"),
    "a mapping of schemas": (_is_mapping, "properties patternProperties dependentSchemas $defs definitions"),
}
_KIND_OF = {name: (kind, rule) for kind, (rule, names) in _KINDS.items() for name in names.split()}


def keyword_faults(node: Mapping[str, Any], root: bool) -> Iterator[str]:
    """The keywords of one schema whose value is of another kind than they ask for."""
    del root
    for name, value in node.items():
        if name in _KIND_OF:
            kind, holds = _KIND_OF[name]
            if not holds(value):
                yield f"has {name} {value!r:.40}, which should be {kind.strip()}"


def newest_draft_faults(node: Mapping[str, Any], root: bool) -> Iterator[str]:
    """The same, and what drafts before 2020-12 wrote otherwise."""
    yield from keyword_faults(node, root)
    if isinstance(node.get("items"), list):
        yield "has a list as items, which draft 2020-12 calls prefixItems"


def type_faults(node: Mapping[str, Any]) -> Iterator[str]:
    """Types that JSON Schema does not have."""
    kind = node.get("type", "object")
    several = kind if isinstance(kind, list) else [kind]
    different = {each for each in several[: len(TYPES)] if isinstance(each, str)}
    if isinstance(kind, list) and (not kind or len(different) < len(kind)):
        yield f"has the types {kind!r:.60}, which should be different ones"
    for each in several[: len(TYPES)]:
        if not isinstance(each, str) or each not in TYPES:
            yield f"has a type {each!r:.40}, which JSON Schema does not have"
