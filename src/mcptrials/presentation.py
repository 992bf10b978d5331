"""What the model is shown: tool names, tool lists, results and errors, as pure rewrites that name themselves.

The model sees what the server sent unless a named policy here changed it; each change is returned as a
`PresentationChange` to be recorded.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcptrials import excerpt
from mcptrials.dialect import EXACT, Dialect, adapt
from mcptrials.encoding import dump_text, parse_foreign
from mcptrials.events import ToolShown
from mcptrials.frozen import Frozen
from mcptrials.overrides import NOTHING, Naming, Overrides, told

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names that every provider takes for a function."""

MAX_REWRITES = 200
"""Changes of one schema that are told one by one; the schema as it was stands in the wire log."""

BYTES_PER_TOKEN = 4
"""For English and JSON under the tokenizers of today; an estimate, and said to be one."""

RawTool = Mapping[str, Any]
"""A tool as the server listed it: name, description, inputSchema, annotations ..."""

_DEFINITION = ("name", "description", "inputSchema")

MOST_CHANGES = 1000
"""Of one result that are told one by one: half a million odd blocks would else be as many events."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a policy made, before it has a time."""

    policy: str
    subject: str
    before: Any = None
    after: Any = None
    rule: str | None = None
    path: str | None = None
    """Where in the subject, as a JSON path."""


class ToolFilter(Frozen):
    """Which of a server's tools the model sees."""

    allow: tuple[str, ...] | None = None
    """Only these; None is all."""
    hide: tuple[str, ...] = ()
    writes: Literal["allowed", "denied"] = "allowed"
    """denied: only tools that declare `readOnlyHint: true`, or that `allow` names."""
    prefix: Literal["collision", "always"] = "collision"
    """When the server's name stands before a tool's."""
    inject: dict[str, dict[str, Any]] = {}
    """Arguments that are added to every call, by tool; those of `*` go to each tool that takes them."""
    list_changed: Literal["frozen", "refresh"] = "frozen"
    """Whether a list that changes during a trial is shown."""

    def shows(self, tool: RawTool) -> bool:
        name = tool["name"]
        if name in self.hide or (self.allow is not None and name not in self.allow):
            return False
        allowed = self.allow is not None and name in self.allow
        return self.writes == "allowed" or allowed or read_only(tool)

    def injected(self, tool: RawTool) -> dict[str, Any]:
        """The arguments that are added to a call of this tool."""
        takes = _parameters(tool)
        everywhere = {name: value for name, value in self.inject.get("*", {}).items() if name in takes}
        return everywhere | self.inject.get(tool["name"], {})


def definition_bytes(tools: Sequence[RawTool]) -> int:
    """What the tools take in every request: models are shown neither output schemas nor annotations."""
    shown = [{key: tool[key] for key in _DEFINITION if key in tool} for tool in tools]
    return sum(len(dump_text(tool).encode()) for tool in shown)


def amiss(inject: Mapping[str, Mapping[str, Any]], tools: Sequence[RawTool]) -> Iterator[str]:
    """What is to be injected where nothing takes it: in words that follow "it"."""
    taken = {tool["name"]: _parameters(tool) for tool in tools}
    taken["*"] = {name for names in taken.values() for name in names}
    for tool, arguments in inject.items():
        if tool not in taken:
            yield f"has no tool {tool!r} to inject arguments into"
        for name in arguments if tool in taken else ():
            if name not in taken[tool]:
                owner = "has no tool" if tool == "*" else f"has a tool {tool!r}"
                yield f"{owner} {'that takes' if tool == '*' else 'that takes no'} {name!r}, which is to be injected"


def _parameters(tool: RawTool) -> set[str]:
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return set(properties) if isinstance(properties, Mapping) else set()


def read_only(tool: RawTool) -> bool:
    """Whether the tool declares that it changes nothing; unset means that it may (spec default false)."""
    annotations = tool.get("annotations")
    return isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True


def present_tools(
    listings: Mapping[str, Sequence[RawTool]],
    filters: Mapping[str, ToolFilter],
    dialect: Dialect = EXACT,
    overrides: Overrides = NOTHING,
) -> tuple[tuple[ToolShown, ...], tuple[Change, ...]]:
    """The tools that the model sees, in server and list order, and what was changed for it and its provider.

    Names go through a reversible map: bare where that is unique and valid for every provider, otherwise prefixed by
    the server or rewritten, with a hash where cutting or replacing could make two names collide.
    """
    shown: dict[str, ToolShown] = {}
    changes: list[Change] = []
    count = Counter(overrides.name_of(server, tool["name"]) for server, tools in listings.items() for tool in tools)
    for server, tool in ((server, tool) for server, tools in listings.items() for tool in tools):
        name, rule = tool["name"], filters.get(server, ToolFilter())
        if not rule.shows(tool):
            changes.append(Change("tool_filter", f"{server}/{name}", name, None))
            continue
        if overrides.hides(server, name):
            changes.append(Change("override", f"{server}/{name}", name, None))
            continue
        given = overrides.name_of(server, name)
        naming = overrides.naming or ("bare" if rule.prefix == "collision" else "prefix")
        shown_name = provider_name(_named(given, server, naming, unique=count[given] == 1), dialect)
        if shown_name in shown:
            shown_name = _hashed(f"{server}__{name}", dialect)
        if shown_name != name:
            changes.append(Change("tool_name", f"{server}/{name}", name, shown_name))
        own = without_injected(tool, rule)
        changes += [Change("inject", f"{server}/{name}", parameter, None) for parameter in rule.injected(tool)]
        new, edits = told(overrides, server, own)
        changes += [Change("override", f"{server}/{name}", each.before, each.after, None, each.path) for each in edits]
        shown[shown_name] = ToolShown(
            shown_name=shown_name,
            server=server,
            tool=name,
            description=_description(server, new, changes),
            input_schema=_schema(server, new, dialect, changes),
        )
    return tuple(shown.values()), tuple(changes)


def _named(name: str, server: str, naming: Naming, *, unique: bool) -> str:
    if naming == "suffix":
        return f"{name}__{server}"
    return name if naming == "bare" and unique else f"{server}__{name}"


def without_injected(tool: RawTool, rule: ToolFilter) -> RawTool:
    """The tool as one that does not take what is injected."""
    hidden = rule.injected(tool).keys()
    return {**tool, "inputSchema": _without(tool["inputSchema"], hidden)} if hidden else tool


def _without(schema: Any, hidden: Collection[str]) -> Any:
    """A schema of an object that has no such properties, also in its alternatives."""
    if not isinstance(schema, Mapping):
        return schema
    kept = dict(schema)
    if isinstance(properties := kept.get("properties"), Mapping):
        kept["properties"] = {name: each for name, each in properties.items() if name not in hidden}
    if isinstance(required := kept.get("required"), list):
        kept["required"] = [name for name in required if name not in hidden]
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(parts := kept.get(keyword), list):
            kept[keyword] = [_without(part, hidden) for part in parts]
    return kept


def _schema(server: str, tool: RawTool, dialect: Dialect, changes: list[Change]) -> Any:
    adapted = adapt(tool.get("inputSchema"), dialect)
    subject = f"{server}/{tool['name']}"
    told = adapted.rewrites[:MAX_REWRITES]
    changes += [Change("schema", subject, each.before, each.after, each.rule, each.path) for each in told]
    if left := len(adapted.rewrites) - len(told):
        changes.append(Change("schema", subject, None, f"{left} more changes of the same schema"))
    return adapted.schema


def _description(server: str, tool: RawTool, changes: list[Change]) -> str | None:
    description = tool.get("description")
    if description is None:
        return None
    text = _unicode(description) if isinstance(description, str) else None
    if text != description:
        changes.append(Change("tool_description", f"{server}/{tool['name']}", description, text))
    return text


def _unicode(text: str) -> str:
    """Lone surrogates, which JSON escapes can spell, have no UTF-8 form: no provider takes them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def provider_name(name: str, dialect: Dialect = EXACT) -> str:
    """`name` if every provider takes it; else rewritten, with 8 hex digits of its hash so that none collide."""
    return name if NAME.fullmatch(name) and dialect.first.fullmatch(name) else _hashed(name, dialect)


def _hashed(name: str, dialect: Dialect) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    return f"{plain if dialect.first.fullmatch(plain) else f'_{plain}'}"[:55] + f"_{digest}"


ERROR_MARK = "Error: "


class ResultPolicy(Frozen):
    """What the model reads of results: a condition of the host, hence of the arm."""

    content: Literal["text", "structured", "both"] = "text"
    images: Literal["native", "placeholder"] = "native"
    max_tokens: int | None = None
    long: Literal["error", "truncate", "file"] = "truncate"


AS_TEXT = ResultPolicy()


def present_result(result: Any, policy: ResultPolicy = AS_TEXT) -> tuple[str, tuple[Change, ...]]:
    """The text that a model without native content blocks sees of a raw `tools/call` result.

    Text blocks stand as they are, one per line, and so does the text of a resource; what such blocks tell besides is
    left out. A block of another kind becomes a placeholder with its type and size (never base64 as text); without any
    block, or by the policy, the structured content is shown as JSON, and without that too the whole result. An
    `isError` result is marked unless its text says so itself, since chat APIs have no field for it.
    """
    changes: list[Change] = []
    text = _by_policy(result, policy, changes)
    if (more := len(changes) - MOST_CHANGES) > 0:
        changes[MOST_CHANGES:] = [Change("more_changes", "result", more)]
    if (clean := _unicode(text)) != text:
        changes.append(Change("lone_surrogates", "result"))
    if isinstance(result, Mapping) and result.get("isError") is True and not clean.lstrip().lower().startswith("error"):
        changes.append(Change("mark_error", "result"))
        clean = f"{ERROR_MARK}{clean}"
    return clean, tuple(changes)


def _by_policy(result: Any, policy: ResultPolicy, changes: list[Change]) -> str:
    structured = result.get("structuredContent") if isinstance(result, Mapping) else None
    if policy.content == "text" or structured is None or not result.get("content"):
        return _result_text(result, changes)
    if policy.content == "structured":
        changes.append(Change("structured_content", "result"))
        return dump_text(structured)
    text = _result_text(result, changes)
    if _says(text, structured):
        return text
    changes.append(Change("structured_content_too", "result"))
    return f"{text}\n{dump_text(structured)}"


def _says(text: str, value: Any) -> bool:
    """Whether a text is the JSON of a value, as it should be for clients that know no structured content."""
    try:
        return bool(parse_foreign(text) == value)
    except ValueError:
        return False


def _result_text(result: Any, changes: list[Change]) -> str:
    blocks = result.get("content") if isinstance(result, Mapping) else None
    if blocks and isinstance(blocks, list):
        if len(blocks) > 1:
            changes.append(Change("joined_blocks", "result", len(blocks), 1))
        return "\n".join(_block_text(block, changes) for block in blocks)
    if isinstance(result, Mapping) and "structuredContent" in result:
        changes.append(Change("structured_content", "result"))
        return dump_text(result["structuredContent"])
    if isinstance(blocks, list):
        return ""
    changes.append(Change("malformed_result", "result"))
    return dump_text(result)


def text_of_blocks(result: Any) -> tuple[str, ...]:
    """The text of each content block by itself, for providers that take some blocks as they are."""
    blocks = result.get("content") if isinstance(result, Mapping) else None
    return tuple(_unicode(_block_text(block, [])) for block in blocks) if isinstance(blocks, list) else ()


def _block_text(block: Any, changes: list[Change]) -> str:
    kind = block.get("type") if isinstance(block, Mapping) else None
    inside = block.get("resource") if kind == "resource" else block
    if kind in ("text", "resource") and isinstance(inside, Mapping) and isinstance(inside.get("text"), str):
        text, rest = str(inside["text"]), _besides_text(block)
        if rest:
            changes.append(Change("text_only", str(kind), rest))
        return text
    placeholder = _placeholder(block, kind)
    changes.append(Change("placeholder", str(kind), None, placeholder))
    return placeholder


def _besides_text(block: Mapping[str, Any]) -> dict[str, Any]:
    """What a block with a text tells besides it: the address and type of a resource, annotations."""
    if block["type"] == "text":
        return {key: value for key, value in block.items() if key not in ("type", "text")}
    resource = {key: value for key, value in block["resource"].items() if key != "text"}
    return {**block, "resource": resource}


def _placeholder(block: Any, kind: Any) -> str:
    if not isinstance(block, Mapping):
        return f"[content of unknown form: {excerpt.beginning(json.dumps(block), 80)}]"
    resource = block.get("resource")
    inner = resource if isinstance(resource, Mapping) else block
    facts = [str(inner[key]) for key in ("mimeType", "uri", "name") if isinstance(inner.get(key), str)]
    data = inner.get("data", inner.get("blob"))
    if isinstance(data, str):
        facts.append(f"{len(data) * 3 // 4} bytes")
    return f"[{kind}: {', '.join(facts)}]" if facts else f"[{kind}]"


def present_protocol_error(error: Any) -> str:
    """What the model sees of a JSON-RPC error (the spec: clients MAY show it)."""
    code = error.get("code") if isinstance(error, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else error
    return _unicode(f"MCP error {code}: {message}")
