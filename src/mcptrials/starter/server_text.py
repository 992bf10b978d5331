"""One server of `mcptrials.yaml`, with comments on what was found."""

import os
from collections.abc import Iterator
from pathlib import Path

from mcptrials.counting import counted
from mcptrials.starter.entry import Entry
from mcptrials.starter.hints import state_hints
from mcptrials.starter.inspection import Inspection
from mcptrials.starter.leanings import Leanings, leanings
from mcptrials.starter.yaml_lines import comment, commented, indented, mapping, scalar, sequence

MAX_NAMED = 40
"""Tools of unknown effect that are listed by name."""


def server_lines(entry: Entry, inspection: Inspection | None, project_dir: Path) -> list[str]:
    """The server's key and settings, from column 0."""
    keys = [*_how(entry, project_dir), *_state(entry)]
    if inspection is not None and inspection.problems:
        keys += [comment("its tool list is broken, so a run would stop; this goes on without the broken tools:")]
        keys += commented(["on_invalid_tool: drop"])
    if inspection is not None:
        keys += tool_lines(leanings(inspection.tools))
    about = "not started yet" if inspection is None else describe(entry, inspection)
    return [comment(about), f"{scalar(entry.name)}:", *indented(keys, 2)]


def server_value(entry: Entry, project_dir: Path) -> dict[str, object]:
    """The same as data, without what is only proposed."""
    if entry.url is not None:
        return {"url": entry.url} | ({"headers": dict(entry.headers)} if entry.headers else {})
    value: dict[str, object] = {"command": entry.command}
    value |= {"args": list(entry.args)} if entry.args else {}
    value |= {"env": dict(entry.env)} if entry.env else {}
    folder = working_folder(entry, project_dir)
    return value | ({"cwd": folder} if folder else {})


def describe(entry: Entry, found: Inspection) -> str:
    """What is worth knowing of a server, in one line."""
    tools = counted(len(found.tools), "tool")
    instructions = "instructions" if found.instructions else "no instructions"
    return (
        f"{entry.transport}, {found.era} protocol {found.protocol_version or 'unknown'}, {tools}, "
        f"about {found.definition_tokens:,} tokens of definitions, {instructions}, "
        f"started in {found.startup_ms / 1000:.1f} s"
    )


def working_folder(entry: Entry, project_dir: Path) -> str | None:
    """The folder to start in, relative to the project's; None is the project's own."""
    given = entry.cwd or "."
    if given.startswith(("{", "$")):
        return given
    relative = os.path.relpath(entry.base / given, project_dir)
    if Path(given).is_absolute():
        return given
    return None if relative == "." else relative


def _how(entry: Entry, project_dir: Path) -> Iterator[str]:
    if entry.url is not None:
        yield f"url: {scalar(entry.url)}"
        yield from mapping("headers", entry.headers) if entry.headers else ()
        return
    yield f"command: {scalar(entry.command or '')}"
    yield from sequence("args", entry.args) if entry.args else ()
    yield from mapping("env", entry.env) if entry.env else ()
    if folder := working_folder(entry, project_dir):
        yield f"cwd: {scalar(folder)}"


def _state(entry: Entry) -> Iterator[str]:
    for hint in state_hints(entry):
        own = hint.written.replace(hint.path, hint.own)
        yield comment(f"it works on {hint.written}: with a copy under 'environment.files' write {own} instead")


def tool_lines(tools: Leanings) -> list[str]:
    """The proposal of `tools.allow`: without an environment only tools that change nothing may be shown."""
    if not tools.guessed and not tools.writing:
        return []
    head = "without an 'environment' only tools that change nothing are shown to the model"
    allow = [f"- {scalar(name)}  # declares readOnlyHint: true" for name in tools.declared]
    guessed = [f"- {scalar(name)}  # its name sounds like reading: check that" for name in tools.guessed[:MAX_NAMED]]
    lines = [comment(head if allow else f"{head}; no tool declares that")]
    if allow:
        lines += [
            comment("once there is one, remove 'tools.allow': it hides the others"),
            "tools:",
            "  allow:",
            *indented([*allow, *commented(guessed)], 4),
        ]
    elif guessed:
        lines += commented(["tools:", "  allow:", *indented(guessed, 4)])
    if tools.writing:
        lines.append(comment(f"may write, so they need an 'environment': {', '.join(map(scalar, tools.writing))}"))
    return lines
