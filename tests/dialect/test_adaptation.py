"""A schema in the dialect of a provider: the least change, each told with its place; hostile schemas stay cheap."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcptrials.dialect import (
    ANTHROPIC,
    DIALECTS,
    EXACT,
    GEMINI,
    LLAMA_CPP,
    OPENAI,
    VALID,
    Adapted,
    Dialect,
    adapt,
    dialect_of,
)
from mcptrials.dialect.adaptation import MAX_NODES

STRING: dict[str, Any] = {"type": "string"}
DRAFT_4 = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def schema(argument: Any = STRING, **keys: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"q": argument}, **keys}


def argument(adapted: Adapted) -> Any:
    return adapted.schema["properties"]["q"]


def told(adapted: Adapted) -> list[tuple[str, str]]:
    return [(each.rule, each.path) for each in adapted.rewrites]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_what_every_provider_takes_is_the_same_object_afterwards(dialect: Dialect) -> None:  # C20
    plain = schema({"type": "array", "items": STRING, "description": "Some."}, required=["q"])
    assert adapt(plain, dialect) == Adapted(plain)
    assert adapt(plain, dialect).schema is plain


# Argument, dialect, what it becomes, which rules said so; None: it stays as it is.
ARGUMENTS: list[tuple[Any, Dialect, Any, list[str]]] = [
    ({"type": "array"}, OPENAI, {"type": "array", "items": {}}, ["add_items"]),
    ({"type": ["string", "array"]}, OPENAI, {"type": ["string", "array"], "items": {}}, ["add_items"]),
    ({"type": ["string", "null"]}, OPENAI, None, []),
    ({"type": "array"}, ANTHROPIC, None, []),
    ({"type": "array"}, GEMINI, {"type": "array", "items": {}}, ["one_items"]),
    ({"type": "array"}, LLAMA_CPP, None, []),
    (
        {"type": "array", "items": {"type": "array"}},
        GEMINI,
        {"type": "array", "items": {"type": "array", "items": {}}},
        ["one_items"],
    ),
    ({"type": ["string", "null"]}, GEMINI, {"type": "string", "nullable": True}, ["one_type"]),
    (
        {"type": "array", "items": {"type": ["object", "null"]}},
        GEMINI,
        {"type": "array", "items": {"type": "object", "nullable": True}},
        ["one_type"],
    ),
    (
        {"type": ["string", "array", "null"]},
        GEMINI,
        {"anyOf": [STRING, {"type": "array", "items": {}}], "nullable": True},
        ["one_type"],
    ),
    ({"anyOf": [STRING, {"type": "null"}]}, GEMINI, {"type": "string", "nullable": True}, ["one_type"]),
    ({"anyOf": [STRING, {"type": "null"}]}, ANTHROPIC, None, []),
    ({"oneOf": [STRING, {"type": "integer"}]}, GEMINI, {"anyOf": [STRING, {"type": "integer"}]}, ["any_of"]),
    ({"oneOf": [STRING, {"type": "integer"}]}, OPENAI, None, []),
    ({"allOf": [STRING, {"maxLength": 3}]}, GEMINI, {"type": "string", "maxLength": 3}, ["merge_all_of"]),
    ({"const": "x"}, GEMINI, {"type": "string", "enum": ["x"]}, ["const"]),
    ({"type": "integer", "const": 7}, GEMINI, {"type": "integer"}, ["const", "text_enum"]),
    ({"const": "x"}, OPENAI, None, []),
    (
        {"type": ["string", "null"], "enum": ["a", "", None]},
        GEMINI,
        {"type": "string", "enum": ["a"], "nullable": True},
        ["one_type", "text_enum"],
    ),
    ({"enum": [6, 7.5]}, GEMINI, {}, ["text_enum"]),
    ({"type": "integer", "exclusiveMinimum": 0}, GEMINI, {"type": "integer", "minimum": 1}, ["inclusive_bounds"]),
    ({"type": "number", "exclusiveMaximum": 1.5}, GEMINI, {"type": "number", "maximum": 1.5}, ["inclusive_bounds"]),
    ({"type": "integer", "exclusiveMinimum": 0}, ANTHROPIC, None, []),
    (DRAFT_4, ANTHROPIC, {"type": "integer", "exclusiveMinimum": 0}, ["numeric_bounds"]),
    (DRAFT_4, GEMINI, {"type": "integer", "minimum": 1}, ["inclusive_bounds"]),
    (DRAFT_4 | {"exclusiveMinimum": False}, ANTHROPIC, {"type": "integer", "minimum": 0}, ["numeric_bounds"]),
    ({"type": "string", "format": "uuid"}, GEMINI, STRING, ["drop_format"]),
    ({"type": "string", "format": "date-time"}, GEMINI, None, []),
    ({"type": "string", "format": "uuid"}, OPENAI, None, []),
    (True, GEMINI, {}, ["boolean_schema"]),
    (True, LLAMA_CPP, {}, ["boolean_schema"]),
    (True, OPENAI, None, []),
    ({"type": "string", "required": True}, OPENAI, STRING, ["required_list"]),
    ({"type": "string", "required": "q"}, ANTHROPIC, STRING, ["required_list"]),
    ({"type": "string", "pattern": "abc"}, LLAMA_CPP, STRING, ["drop_pattern"]),
    ({"type": "string", "pattern": "^abc$"}, LLAMA_CPP, None, []),
    (STRING | {"uniqueItems": True, "title": "Q"}, GEMINI, STRING | {"title": "Q"}, ["drop_keywords"]),
    (
        {"type": "array", "items": [STRING, {"type": "number"}]},
        ANTHROPIC,
        {"type": "array", "prefixItems": [STRING, {"type": "number"}]},
        ["prefix_items"],
    ),
    (
        {"type": "array", "prefixItems": [STRING, {"type": "number"}]},
        GEMINI,
        {"type": "array", "items": {"anyOf": [STRING, {"type": "number"}]}},
        ["one_items"],
    ),
    (
        {"type": "object", "properties": {"a": STRING}, "required": ["a", "b"]},
        GEMINI,
        {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
        ["required_defined"],
    ),
    (
        {"type": "array", "items": [STRING, STRING]},
        OPENAI,
        {"type": "array", "prefixItems": [STRING, STRING], "items": {}},
        ["prefix_items", "add_items"],
    ),
    (
        {"type": "array", "items": [STRING], "additionalItems": False},
        OPENAI,
        {"type": "array", "prefixItems": [STRING], "items": False},
        ["prefix_items"],
    ),
    ({"type": "array", "items": []}, OPENAI, {"type": "array", "items": {}}, ["prefix_items", "add_items"]),
    ({"type": "array", "items": []}, ANTHROPIC, {"type": "array"}, ["prefix_items"]),
    (DRAFT_4, OPENAI, {"type": "integer", "exclusiveMinimum": 0}, ["numeric_bounds"]),
    (STRING | {"examples": "Emma"}, OPENAI, STRING | {"examples": ["Emma"]}, ["examples_list"]),
    (
        {"type": ["object", "string"], "properties": {"a": STRING}, "required": ["a"], "minLength": 2},
        GEMINI,
        {"anyOf": [{"type": "object", "properties": {"a": STRING}, "required": ["a"]}, STRING | {"minLength": 2}]},
        ["one_type"],
    ),
    (
        {"type": ["string", "integer"], "enum": ["a", ""], "maximum": 3, "format": "int32"},
        GEMINI,
        {"anyOf": [STRING | {"enum": ["a"]}, {"type": "integer", "maximum": 3, "format": "int32"}]},
        ["one_type"],
    ),
    (
        {
            "type": "object",
            "properties": {"a": STRING, "b": STRING},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        GEMINI,
        {"type": "object", "properties": {"a": STRING, "b": STRING}},
        ["inherit_type", "inherit_type", "required_defined", "required_defined", "any_of", "drop_any_of"],
    ),
    (
        {"oneOf": [{"properties": {"a": STRING}, "required": ["a"]}, {"items": STRING}, STRING]},
        GEMINI,
        {"anyOf": [
            {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
            {"type": "array", "items": STRING},
            STRING,
        ]},
        ["implied_type", "implied_type", "any_of"],
    ),
    (
        {"type": "integer", "anyOf": [{"minimum": 3}, {"exclusiveMaximum": 0}]},
        GEMINI,
        {"type": "integer", "anyOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": -1}]},
        ["inherit_type", "inherit_type", "inclusive_bounds"],
    ),
    ({"minLength": 2, "anyOf": [STRING, {"type": "integer"}]}, GEMINI,
     {"anyOf": [STRING | {"minLength": 2}, {"type": "integer"}]}, ["implied_type"]),
    ({"properties": {"a": STRING}}, GEMINI, {"type": "object", "properties": {"a": STRING}}, ["implied_type"]),
    ({"type": "boolean", "minLength": 2}, GEMINI, {"type": "boolean"}, ["drop_misplaced"]),
    ({"properties": {"a": STRING}}, OPENAI, None, []),
]  # fmt: skip


@pytest.mark.parametrize("place", ["definitions", "$defs", "dependencies"])
def test_a_list_as_items_is_found_also_where_it_is_only_referred_to(place: str) -> None:
    pair = {"type": "array", "items": [STRING, STRING]}
    adapted = adapt(schema({"type": "string"}, **{place: {"Pair": pair}}), OPENAI)
    assert adapted.schema[place]["Pair"] == {"type": "array", "prefixItems": [STRING, STRING], "items": {}}
    assert told(adapted)[0] == ("prefix_items", f"$.{place}.Pair")
    assert adapted.obstacles == ()


@pytest.mark.parametrize(("given_", "dialect", "expected", "rules"), ARGUMENTS)
def test_an_argument_is_changed_only_where_its_provider_needs_it(
    given_: Any, dialect: Dialect, expected: Any, rules: list[str]
) -> None:
    adapted = adapt(schema(given_), dialect)
    assert argument(adapted) == (given_ if expected is None else expected)
    assert [rule for rule, _ in told(adapted)] == rules
    assert adapted.obstacles == ()


def test_a_root_without_properties_gets_some_where_that_is_asked_for() -> None:  # C18
    bare = {"type": "object"}
    assert adapt(bare, OPENAI).schema == {"type": "object", "properties": {}}
    assert told(adapt(bare, OPENAI)) == [("add_properties", "$")]
    assert adapt(bare, ANTHROPIC) == Adapted(bare)
    assert adapt(schema({"type": "object"}), OPENAI).rewrites == ()


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC], ids=lambda each: each.name)
def test_alternatives_at_the_root_become_properties_of_the_root(dialect: Dialect) -> None:
    branches = [
        {"required": ["q"]},
        {"properties": {"r": {"type": "integer"}}, "required": ["r"]},
        {"$ref": "#/$defs/S"},
    ]
    adapted = adapt(schema(oneOf=branches, **{"$defs": {"S": {"properties": {"s": STRING}}}}), dialect)
    assert adapted.schema["properties"] == {"q": STRING, "r": {"type": "integer"}, "s": STRING}
    assert "oneOf" not in adapted.schema
    assert "required" not in adapted.schema
    assert told(adapted) == [("merge_root", "$")]
    assert adapted.rewrites[0].before["oneOf"] == branches


def test_what_all_branches_at_the_root_require_is_still_required() -> None:
    adapted = adapt(schema(allOf=[{"properties": {"r": STRING}, "required": ["r"]}], required=["q"]), OPENAI)
    assert adapted.schema == {"type": "object", "properties": {"q": STRING, "r": STRING}, "required": ["q", "r"]}


def test_every_change_is_told_with_its_place_and_the_keys_concerned() -> None:
    items = {"type": "array", "items": {"properties": {"x": {"type": "array"}}}}
    [rewrite] = adapt(schema(items), OPENAI).rewrites
    assert (rewrite.rule, rewrite.path) == ("add_items", "$.properties.q.items.properties.x")
    assert (rewrite.before, rewrite.after) == ({}, {"items": {}})


@pytest.mark.parametrize("group", ["$defs", "definitions"])
def test_references_are_written_out_for_a_provider_that_has_none(group: str) -> None:  # C19
    given_ = schema(
        {"$ref": f"#/{group}/Q", "description": "Mine."}, **{group: {"Q": {"type": "string", "description": "Q"}}}
    )
    adapted = adapt(given_, GEMINI)
    assert adapted.schema == schema({"type": "string", "description": "Mine."})
    assert told(adapted) == [("inline_ref", "$.properties.q"), ("drop_keywords", "$")]
    assert adapt(given_, OPENAI) == Adapted(given_)
    assert adapt(given_, ANTHROPIC) == Adapted(given_)


@pytest.mark.parametrize(
    "ref", ["#/$defs/a~1b", "#/%24defs/a~1b", "#ab", "https://example.org/tool#/$defs/a~1b", "#/properties/r/anyOf/0"]
)
def test_references_are_followed_through_escapes_anchors_and_lists(ref: str) -> None:
    definitions = {"a/b": {"$anchor": "ab", "type": "string"}}
    given_ = {"type": "object", "properties": {"q": {"$ref": ref}, "r": {"anyOf": [STRING]}}, "$defs": definitions}
    given_["$id"] = "https://example.org/tool"
    assert argument(adapt(given_, GEMINI)) == STRING


def test_a_recursive_reference_ends_in_its_type_after_one_round() -> None:  # C19
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "value": STRING}}
    adapted = adapt(schema({"$ref": "#/$defs/N"}, **{"$defs": {"N": node}}), GEMINI)
    assert argument(adapted) == {"type": "object", "properties": {"next": {"type": "object"}, "value": STRING}}
    assert ("recursive_ref", "$.properties.q.properties.next") in told(adapted)


A, B = {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}


@pytest.mark.parametrize(
    "definitions", [{"A": A}, {"A": B, "B": A}, {"A": {"allOf": [A]}}, {"A": {"properties": {"q": A}}}]
)
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_references_in_a_circle_end(definitions: dict[str, Any], dialect: Dialect) -> None:
    adapted = adapt(schema({"$ref": "#/$defs/A"}, **{"$defs": definitions}), dialect)
    assert adapted.obstacles == ()
    assert len(json.dumps(adapted.schema)) < 500


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC, GEMINI, LLAMA_CPP], ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("#/$defs/Missing", "leads nowhere in the schema"),
        ("#missing", "leads nowhere in the schema"),
        ("#/properties/q/anyOf/9", "leads nowhere in the schema"),
        ("https://127.0.0.1:9/q.json", "leads out of the schema, and is never fetched"),
        ("file:///etc/passwd", "leads out of the schema, and is never fetched"),
        (5, "leads out of the schema, and is never fetched"),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_obstacle_with_its_name(ref: Any, why: str, dialect: Dialect) -> None:
    [obstacle] = adapt(schema({"$ref": ref}), dialect).obstacles
    assert obstacle.path == "$.properties.q"
    assert obstacle.what == f"has a $ref {ref!r} that {why}"


@pytest.mark.parametrize("kind", ["any", "int", "String", 5, {"a": 1}, ["string", "int"]])
def test_types_that_there_are_not_cannot_be_mended(kind: Any) -> None:
    for dialect in (OPENAI, ANTHROPIC, GEMINI):
        [obstacle] = adapt(schema({"type": kind}), dialect).obstacles
        assert "which JSON Schema does not have" in obstacle.what


@pytest.mark.parametrize("part", ["object", 5, None, ["string"]])
def test_a_property_that_is_no_schema_is_an_obstacle(part: Any) -> None:
    for dialect in (OPENAI, ANTHROPIC, GEMINI, LLAMA_CPP):
        [obstacle] = adapt(schema(part), dialect).obstacles
        assert (obstacle.path, obstacle.what) == ("$.properties.q", f"is no schema but {part!r}")
    assert adapt(schema(part), EXACT) == Adapted(schema(part))


@pytest.mark.parametrize("name", ["filter[id]", "$top", "@graph", "x" * 65, "", "naïve"])
def test_an_argument_whose_name_a_provider_refuses_is_an_obstacle_only_at_the_top(name: str) -> None:
    [obstacle] = adapt({"type": "object", "properties": {name: STRING}}, ANTHROPIC).obstacles
    assert obstacle.path == "$"
    assert adapt(schema({"type": "object", "properties": {name: STRING}}), ANTHROPIC).obstacles == ()
    assert adapt({"type": "object", "properties": {name: STRING}}, OPENAI).obstacles == ()


def test_a_schema_of_an_older_draft_does_not_say_so_to_a_provider_of_the_newer_only() -> None:
    assert "$schema" not in adapt(schema(**{"$schema": DRAFT_7}), ANTHROPIC).schema
    assert adapt(schema(**{"$schema": "https://json-schema.org/draft/2020-12/schema"}), ANTHROPIC).rewrites == ()
    assert adapt(schema(**{"$schema": DRAFT_7}), OPENAI).rewrites == ()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (("openai", None), OPENAI),
        (("openai", "https://api.openai.com/v1"), OPENAI),
        (("openai", "https://generativelanguage.googleapis.com/v1beta/openai/"), GEMINI),
        (("openai", "https://api.anthropic.com/v1/"), ANTHROPIC),
        (("openai", "http://127.0.0.1:8901/v1"), EXACT),
        (("openai", "https://openrouter.ai/api/v1"), EXACT),
        (("openai", "https://api.openai.com.example.org/v1"), EXACT),
        (("local", None), EXACT),
        (("scripted", None), EXACT),
        (("./mine.py:Mine", None), EXACT),
    ],
)
def test_only_a_known_provider_has_a_dialect_by_itself(model: tuple[str, str | None], expected: Dialect) -> None:
    assert dialect_of(*model) is expected
    assert dialect_of(*model, "gemini") is GEMINI
    assert dialect_of(*model, "exact") is EXACT


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"type": "object", "properties": {"a": inner}}
    return inner


def multiplying() -> dict[str, Any]:
    """30 references on each of 30 levels: 30 to the power of 30 schemas, if one wrote them out."""
    level = [
        {"type": "object", "properties": {f"p{n}": {"$ref": f"#/$defs/{i + 1}"} for n in range(30)}} for i in range(30)
    ]
    return schema({"$ref": "#/$defs/0"}, **{"$defs": {str(i): each for i, each in enumerate(level)} | {"30": STRING}})


def large() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"p{n}": {"type": ["string", "null"], "description": "x" * 60} for n in range(9000)},
    }


def large_and_shared() -> dict[str, Any]:
    names = {f"p{n}": {"$ref": "#/$defs/B"} for n in range(400)}
    return {"type": "object", "properties": names, "$defs": {"B": {"type": "string", "enum": ["x" * 1000] * 1000}}}


def long_lists() -> dict[str, Any]:
    names = [f"n{number}" for number in range(60_000)]
    branches = [{"required": names}, {"required": names[::-1]}]
    return {"type": "object", "required": names, "allOf": branches, "properties": {"q": {"type": names, "enum": names}}}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    "hostile",
    [nested(240), multiplying(), large(), large_and_shared(), long_lists()],
    ids=["deep", "many", "1MB", "shared", "lists"],
)
def test_hostile_schemas_cost_little(hostile: dict[str, Any], dialect: Dialect) -> None:
    before = json.dumps(hostile)
    began = time.process_time()
    adapted = adapt(hostile, dialect)
    assert time.process_time() - began < 3
    assert json.dumps(hostile) == before
    assert sum(len(json.dumps([each.before, each.after])) for each in adapted.rewrites) < 1000 * max(
        1, len(adapted.rewrites)
    )


def test_bounds_are_obstacles_that_name_them() -> None:
    [deep] = adapt(nested(240), OPENAI).obstacles
    assert deep.what == "is nested deeper than 48 schemas"
    [many] = adapt(multiplying(), GEMINI).obstacles
    assert many.what == f"has over {MAX_NODES} parts once references are written out"


NAMES = st.sampled_from(["a", "b", "$ref", "type"])
VALUES = st.sampled_from(
    [None, True, 0, 1.5, "string", "#/$defs/a", "array", [], {}, ["string", "null"], ["a"], {"type": "null"}]
)
KEYWORDS = st.sampled_from(
    [
        *["type", "enum", "const", "items", "prefixItems", "properties", "required", "anyOf", "oneOf", "allOf", "not"],
        *["minLength", "minItems", "additionalItems", "definitions", "examples"],
        *["$ref", "$defs", "format", "pattern", "minimum", "exclusiveMinimum", "additionalProperties", "nullable"],
    ]
)
SCHEMAS = st.recursive(
    st.dictionaries(KEYWORDS, VALUES, max_size=3),
    lambda inner: st.dictionaries(
        KEYWORDS, inner | st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3) | VALUES, max_size=4
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100)
@given(inner=SCHEMAS, dialect=st.sampled_from(list(DIALECTS.values())))
def test_any_json_is_adapted_without_a_crash_and_a_second_time_without_a_change(inner: Any, dialect: Dialect) -> None:
    given_ = {"type": "object", **inner}
    before = json.dumps(given_)
    adapted = adapt(given_, dialect)
    assert json.dumps(given_) == before
    json.dumps([[each.before, each.after] for each in adapted.rewrites])
    if adapted.rewrites:
        assert adapted.schema is not given_
    else:
        assert adapted.schema is given_
    if not adapted.obstacles and not adapt(adapted.schema, dialect).obstacles:
        assert told(adapt(adapted.schema, dialect)) == []


TAKEN_BY = {
    **dict.fromkeys(("properties", "required"), ("object",)),
    **dict.fromkeys(("items", "minItems"), ("array",)),
    **dict.fromkeys(("minLength", "pattern", "enum"), ("string",)),
    "format": ("string", "integer", "number"),
    "minimum": ("number", "integer"),
}


def schemas_in(node: Any) -> Iterator[Any]:
    yield node
    for inner in [
        *node.get("properties", {}).values(),
        *node.get("anyOf", []),
        *([node["items"]] if "items" in node else []),
    ]:
        yield from schemas_in(inner)


@settings(deadline=None, max_examples=100)
@given(inner=SCHEMAS)
def test_for_gemini_no_keyword_stands_beside_a_type_that_does_not_take_it(inner: Any) -> None:
    adapted = adapt({"type": "object", "properties": {"q": inner}}, GEMINI)
    if not adapted.obstacles:
        for node in schemas_in(adapted.schema):
            strange = [key for key in node if key in TAKEN_BY and node.get("type") not in TAKEN_BY[key]]
            assert strange == []


def multiplied() -> dict[str, Any]:
    inner: dict[str, Any] = STRING
    for _ in range(20):
        inner = {"properties": {"a": inner}, "anyOf": [{"type": "object", "title": str(n)} for n in range(20)]}
    return schema(inner)


def test_what_stands_beside_alternatives_does_not_multiply() -> None:
    assert len(json.dumps(adapt(multiplied(), GEMINI).schema)) < 2 * len(json.dumps(multiplied()))


@settings(deadline=None, max_examples=60)
@example(inner={"additionalItems": None})
@example(inner={"items": {}, "additionalItems": {"type": 3}})
@given(inner=SCHEMAS)
def test_what_is_valid_by_the_metaschema_has_no_fault_and_what_is_not_has_one(inner: Any) -> None:
    given_ = {"type": "object", **inner}
    local = all(each.what.find("$ref") < 0 for each in adapt(given_, VALID).obstacles)
    if local:
        assert (adapt(given_, VALID).obstacles == ()) == Draft202012Validator(
            Draft202012Validator.META_SCHEMA
        ).is_valid(given_)
