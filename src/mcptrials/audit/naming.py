"""Naming: tools, servers and arguments that tasks and readers name, looked for among those that are there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcptrials import plugins
from mcptrials.audit.line import Level, Line
from mcptrials.environment import ToolReader, parse_reader
from mcptrials.presentation import RawTool, ToolFilter
from mcptrials.project import Project
from mcptrials.runner.building import Workshop
from mcptrials.runner.hidden import why_hidden
from mcptrials.source import Keys, nearest
from mcptrials.task import ReferenceCall, Task

_ON_TOOLS = ("required_tools", "forbidden_tools", "call_order")
"""Graders with tools by name."""
_LENIENT = ("not_found", "refuse")
"""What is expected of tasks whose reference may be answered with a tool's error."""
_OPEN = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties")
"""Keywords by which a schema may take more names than stand in its `properties`."""

_SHORT, _SEE = 80, "see 'writes' of the environment"
"""What is told once, for all tools that writes would need, is not told with each."""

Problem = tuple[Level, str, str | None]
"""What is wrong with a name, and what would help."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The tools of one server of one variant."""

    variant: str
    server: str
    tools: Sequence[RawTool]
    whole: bool
    """Whether these are all that it has, now and later."""


class Names:
    """What can be named."""

    def __init__(self, project: Project, workshop: Workshop, listed: Sequence[Listed]) -> None:
        self._project, self._workshop, self._listed = project, workshop, listed
        self._tools = [(each, tool) for each in listed for tool in each.tools]
        own = all(host.host == "loop" for host in project.config.hosts)
        self._foreign: Level = "fail" if own else "warn"
        """Another host may have tools of its own, which graders may name."""

    def lines_of(self, task: Task) -> list[Line]:
        """What a task names that is not there."""
        return [
            Line("tasks", level, task.id, f"{where}: {what}", fix, {"reference": key[0] == "reference"})
            for key, (level, what, fix) in self._problems(task)
            for where in [self._project.where_in(task, *key)]
        ]

    def reader_lines(self) -> list[Line]:
        """Tools that readers ask for."""
        lines: list[Line] = []
        hashes = self._workshop.environment_hashes()
        for task in {hashes[task.id]: task for task in reversed(self._project.suite.tasks)}.values():
            for pattern, reader in self._workshop.environment(task).spec.readers.items():
                where = self._project.where_in(task, "environment", "readers", pattern)
                for level, what, fix in self._reader(parse_reader(reader), task):
                    line = Line("environment", level, "readers", f"{where}: {what}", fix)
                    lines += [line] if line not in lines else []
        return lines

    def _problems(self, task: Task) -> Iterator[tuple[Keys, Problem]]:
        for index, name in enumerate(task.expected_tools):
            for each in self._tool(name, task, self._foreign):
                yield ("expected_tools", index), each
        for index, spec in enumerate(task.graders):
            names = spec.settings.get("tools", ()) if spec.type in _ON_TOOLS else ()
            for number, name in enumerate(names):
                found = self._tool(name, task, self._foreign, gone_is_well=spec.type == "forbidden_tools")
                for each in found:
                    yield ("graders", index, "tools", number), each
            if spec.type == "state_check" and spec.settings.get("read"):
                found = self._reader(parse_reader(spec.settings["read"]), task)
                for each in found:
                    yield ("graders", index, "read"), each
        for index, call in enumerate(task.reference.calls if task.reference else ()):
            for key, each in self._call(call, task):
                yield ("reference", "calls", index, *key), each

    def _call(self, call: ReferenceCall, task: Task) -> Iterator[tuple[Keys, Problem]]:
        servers = self._project.config.servers
        if call.server is not None and call.server not in servers:
            yield ("server",), ("fail", f"there is no server {call.server!r}", nearest(call.server, servers))
            return
        name = f"{call.server}/{call.tool}" if call.server else call.tool
        unknown = list(self._tool(name, task, "fail"))
        yield from ((("tool",), each) for each in unknown)
        fitting = [
            each for each in self._tools if each[1]["name"] == call.tool and call.server in (None, each[0].server)
        ]
        if not unknown and fitting:
            problems = [list(self._arguments(call, task, *each)) for each in fitting]
            yield from min(problems, key=len)

    def _tool(self, name: str, task: Task, level: Level, *, gone_is_well: bool = False) -> Iterator[Problem]:
        """What is wrong with the name of a tool, bare or behind its server's."""
        named = [(each, tool) for each, tool in self._tools if name in (tool["name"], f"{each.server}/{tool['name']}")]
        if any(self._shows(each, tool, task) for each, tool in named) or (named and gone_is_well):
            return
        if named:
            each, tool = named[0]
            config = self._project.config.servers_of(each.variant)[each.server]
            why, fix = why_hidden(each.server, tool, config, self._rule(each, task))
            yield level, f"tool {name!r} is shown to no model: {why}", fix if len(fix) < _SHORT else _SEE
        elif self._listed and all(each.whole for each in self._listed):
            yield level, f"there is no tool {name!r}", self._meant(name)

    def _meant(self, name: str) -> str | None:
        for each, tool in self._tools:
            given = self._project.overrides_of(each.variant).name_of(each.server, tool["name"])
            if given == name:
                return f"models see {tool['name']!r} by this name; write {tool['name']!r}"
        behind = "/" in name
        return nearest(
            name, {f"{each.server}/{tool['name']}" if behind else tool["name"] for each, tool in self._tools}
        )

    def _rule(self, listed: Listed, task: Task) -> ToolFilter:
        return self._workshop.rules(task, listed.variant)[listed.server]

    def _shows(self, listed: Listed, tool: RawTool, task: Task) -> bool:
        hidden = self._project.overrides_of(listed.variant).hides(listed.server, tool["name"])
        return self._rule(listed, task).shows(tool) and not hidden

    def _reader(self, reader: object, task: Task) -> Iterator[Problem]:
        """What is wrong with the tool that a reader asks, which no model needs to see."""
        if not isinstance(reader, ToolReader):
            return
        server, tool = reader.target(self._project.config.servers)
        own = [each for each in self._listed if each.server == server]
        found = [(each, known) for each in own for known in each.tools if known["name"] == tool]
        if not found and own and all(each.whole for each in own):
            names = [known["name"] for each in own for known in each.tools]
            yield "fail", f"server {server!r} has no tool {tool!r}", nearest(tool, names)
        call = ReferenceCall(server=server, tool=tool, args=reader.args)
        problems = [list(self._arguments(call, task, *each, values=False)) for each in found]
        yield from (each for _, each in min(problems, key=len, default=[]))

    def _arguments(
        self, call: ReferenceCall, task: Task, listed: Listed, tool: RawTool, *, values: bool = True
    ) -> Iterator[tuple[Keys, Problem]]:
        """What is wrong with a call by the schema of its tool.

        Args:
            values: whether the values are known yet.
        """
        schema = tool.get("inputSchema")
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
            return
        closed = schema.get("additionalProperties") is False
        if schema.get("additionalProperties") in (None, False) and not schema.keys() & set(_OPEN):
            for name in (name for name in call.args if name not in properties):
                what = f"tool {call.tool!r} takes no argument {name!r}"
                what += "" if closed else ", which its server may drop without a word"
                yield ("args", name), ("fail" if closed else "warn", what, _argument_hint(name, properties))
        given = call.args.keys() | self._rule(listed, task).injected(tool).keys()
        required = schema.get("required")
        missing = [name for name in required if name not in given] if isinstance(required, list) else []
        if task.expects in _LENIENT or not values:
            return
        for name in missing:
            yield ("args",), ("fail", f"tool {call.tool!r} needs the argument {name!r}", f"add {name!r}")
        yield from () if missing else self._misfit(call, task, schema)

    def _misfit(self, call: ReferenceCall, task: Task, schema: Mapping[str, object]) -> Iterator[tuple[Keys, Problem]]:
        parts: Any = schema.get("properties")
        misfit = plugins.load("hosts", "mcptrials.hosts.arguments:misfit")
        for name in call.args if isinstance(parts, Mapping) else ():
            if name not in parts:
                continue
            one = {"$defs": schema.get("$defs", {}), "properties": {name: parts[name]}}
            if said := misfit(one, {name: call.args[name]}):
                shown = said.partition(": ")[0] if task.split == "held_out" else said
                what = f"argument {name!r} does not fit the schema of tool {call.tool!r}: {shown}"
                yield ("args", name), ("warn", what, "mend the value, or the schema")


def _argument_hint(name: str, properties: Mapping[str, object]) -> str:
    return nearest(name, map(str, properties)) or "it takes none"
