"""Overrides: what a model is told of tools instead of what their servers say; calls reach the servers unchanged."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from mcptrials.encoding import canonical_hash
from mcptrials.errors import UsageError
from mcptrials.frozen import UserData
from mcptrials.source import dotted, nearest

Naming = Literal["bare", "prefix", "suffix"]

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


def _every_provider_takes_it(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("no provider's name of a tool: 1 to 64 of A-Z a-z 0-9 _ -, a letter or _ first")
    return value


class Annotations(UserData):
    """Hints on what a tool does; null takes one away. Filters go by the server's own."""

    title: str | None = None
    """A title for people."""
    readOnlyHint: bool | None = None  # noqa: N815 - the protocol's spelling
    """Whether it changes nothing."""
    destructiveHint: bool | None = None  # noqa: N815
    """Whether it may destroy something."""
    idempotentHint: bool | None = None  # noqa: N815
    """Whether calling it again changes nothing more."""
    openWorldHint: bool | None = None  # noqa: N815
    """Whether it deals with what is outside of its server."""


class ToolOverride(UserData):
    """What one tool is said to be; a key that is left out changes nothing, and null takes a text away."""

    name: Annotated[str, AfterValidator(_every_provider_takes_it)] | None = None
    """The name that the model sees and calls."""
    title: str | None = None
    """A title for people; our own loop does not show it to models."""
    description: str | None = None
    """What it does, and when to use it."""
    parameters: dict[str, str | None] = {}
    """Descriptions of parameters by name; `outer.inner` inside objects and lists."""
    annotations: Annotations = Annotations()
    """Hints on what it does; our own loop does not show them to models."""
    hide: bool = False
    """Whether the model does not see it at all."""


class Overrides(UserData):
    """An `overrides.yaml`: what the model is told instead."""

    tools: dict[str, ToolOverride] = {}
    """By TOOL, or SERVER/TOOL where several servers have a tool of that name."""
    instructions: dict[str, str | None] = {}
    """The instructions of servers, by server; null takes them away."""
    naming: Naming | None = None
    """How tools are called: by their bare names where these are unique, or always with the server's before or after."""

    @property
    def hash(self) -> str | None:
        """Of what it says, not of how that is written; None when it says nothing."""
        said = self.model_dump(exclude_unset=True)
        said["tools"] = {tool: each for tool, each in said.get("tools", {}).items() if each}
        return canonical_hash(said) if any(said.values()) else None

    def names(self) -> tuple[str, ...]:
        """The names that it chooses."""
        return tuple(tool.name for tool in self.tools.values() if tool.name)

    def of(self, server: str, tool: str) -> tuple[str, ToolOverride] | None:
        """What is said of a tool, and under which key."""
        for key in (f"{server}/{tool}", tool):
            if key in self.tools:
                return key, self.tools[key]
        return None

    def name_of(self, server: str, tool: str) -> str:
        """A tool's name before the server's is added."""
        found = self.of(server, tool)
        return (found and found[1].name) or tool

    def hides(self, server: str, tool: str) -> bool:
        found = self.of(server, tool)
        return bool(found and found[1].hide)

    def instructions_of(self, server: str, own: str | None) -> str | None:
        return self.instructions.get(server, own)


NOTHING = Overrides()


@dataclass(frozen=True, slots=True)
class Edit:
    """One thing that is said otherwise; None is "not there"."""

    path: str
    """Where in the tool, as a JSON path."""
    before: Any
    after: Any


def told(overrides: Overrides, server: str, tool: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Edit, ...]]:
    """A tool as the model is told of it, but for its name, and what of it was changed for that."""
    found = overrides.of(server, tool["name"])
    if found is None:
        return tool, ()
    said = found[1]
    edits: list[Edit] = []
    new = _replaced(
        tool, {key: getattr(said, key) for key in ("title", "description") if key in said.model_fields_set}, edits
    )
    if hints := said.annotations.model_dump(exclude_unset=True):
        own = tool.get("annotations")
        new["annotations"] = _replaced(own if isinstance(own, Mapping) else {}, hints, edits, "$.annotations")
    for parameter, text in said.parameters.items():
        # What is not there was found out before the run; a server that changed since shows what it has.
        if described := _described(new.get("inputSchema"), parameter, text):
            new["inputSchema"], before = described
            edits.append(Edit(f"$.inputSchema: {parameter}", before, text))
    return new, tuple(edits)


def _replaced(value: Mapping[str, Any], keys: Mapping[str, Any], edits: list[Edit], at: str = "$") -> dict[str, Any]:
    """With other values of some keys, in the old order; None takes a key away."""
    edits += [Edit(f"{at}.{key}", value.get(key), after) for key, after in keys.items() if value.get(key) != after]
    merged = {**value, **keys}
    return {key: each for key, each in merged.items() if key not in keys or each is not None}


def _described(schema: Any, parameter: str, text: str | None) -> tuple[Any, Any] | None:
    """The schema with another description of a parameter, and the old one; None when it has no such parameter."""
    if not isinstance(schema, Mapping):
        return None
    for key, inside in _ways(schema, parameter):
        properties = schema["properties"]
        if inside is None:
            own = {} if properties[key] is True else properties[key]
            if not isinstance(own, Mapping):
                return None
            new = _replaced(own, {"description": text}, [])
            return {**schema, "properties": {**properties, key: new}}, own.get("description")
        if found := _described(properties[key], inside, text):
            return {**schema, "properties": {**properties, key: found[0]}}, found[1]
    found = _described(schema.get("items"), parameter, text)
    return ({**schema, "items": found[0]}, found[1]) if found else None


def _ways(schema: Mapping[str, Any], parameter: str) -> Iterator[tuple[str, str | None]]:
    """Each property that a parameter may name, with the rest of the name; the property's own name comes first."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    if parameter in properties:
        yield parameter, None
    for key in properties:
        if parameter.startswith(f"{key}."):
            yield key, parameter.removeprefix(f"{key}.")


def check(overrides: Overrides, listings: Mapping[str, Sequence[Mapping[str, Any]]], file: str) -> None:
    """Everything that is spoken of must be there, and no two tools may end with one name.

    Raises:
        UsageError: names what is not there, and the nearest that is.
    """
    for server in overrides.instructions.keys() - listings.keys():
        where = f"{file}: {dotted(('instructions', server))}"
        raise UsageError(f"there is no server {server!r}", where=where, hint=nearest(server, listings))
    for key, said in overrides.tools.items():
        _check_tool(key, said, listings, f"{file}: {dotted(('tools', key))}")
    for server, tools in listings.items():
        names = [overrides.name_of(server, tool["name"]) for tool in tools]
        name, count = Counter(names).most_common(1)[0] if names else ("", 0)
        if count > 1:
            what = f"{count} tools of server {server!r} would be called {name!r}"
            raise UsageError(what, where=file, hint="give them different names")


def _check_tool(key: str, said: ToolOverride, listings: Mapping[str, Sequence[Mapping[str, Any]]], where: str) -> None:
    found = {
        f"{server}/{tool['name']}": tool
        for server, tools in listings.items()
        for tool in tools
        if key in (tool["name"], f"{server}/{tool['name']}")
    }
    if not found:
        known = [name for server, tools in listings.items() for tool in tools for name in _names(server, tool, key)]
        raise UsageError(f"no server has a tool {key!r}", where=where, hint=nearest(key, known))
    if len(found) > 1:
        raise UsageError(f"several servers have a tool {key!r}", where=where, hint=f"write {' or '.join(found)}")
    [tool] = found.values()
    for parameter in said.parameters:
        if not _described(tool.get("inputSchema"), parameter, ""):
            hint = nearest(parameter, _parameters(tool.get("inputSchema"))) or "it takes none"
            raise UsageError(f"the tool has no parameter {parameter!r}", where=where, hint=hint)


def _names(server: str, tool: Mapping[str, Any], like: str) -> tuple[str, ...]:
    """A tool's names, in the form of the one that was not found."""
    return (f"{server}/{tool['name']}",) if "/" in like else (tool["name"],)


def _parameters(schema: Any, before: str = "", depth: int = 8) -> Iterator[str]:
    """The names of all parameters, inner ones after their outer one."""
    if not isinstance(schema, Mapping) or not depth:
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        yield f"{before}{name}"
        yield from _parameters(inner, f"{before}{name}.", depth - 1)
    yield from _parameters(schema.get("items"), before, depth - 1)
