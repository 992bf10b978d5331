"""`mcptrials init`: the first project of a server, from how it is started today."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from mcptrials.cli.outcome import Outcome, end, keep_secret
from mcptrials.cli.screen import common_options, from_here, messages, one_line, output, safe
from mcptrials.counting import counted
from mcptrials.errors import UsageError
from mcptrials.presentation import read_only
from mcptrials.project import DEFAULT_FILE
from mcptrials.starter import Entry, Started, Starter, from_command, from_url
from mcptrials.starter.client_file import ClientFile, find_client_file, read_client_file
from mcptrials.starter.server_text import describe


@click.command()
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--url", metavar="URL", help="An HTTP server's address.")
@click.option("--from", "client_file", metavar="FILE", help="An MCP client's file: .mcp.json, Claude, VS Code, Cursor.")
@click.option("--server", metavar="NAME", help="Only this server of the file; or the name of the one given.")
@click.option("--into", default=".", metavar="DIR", help="The project's folder (default: this one).")
@click.option("--offline", is_flag=True, help="Write without starting any server.")
@common_options
def init(command: tuple[str, ...], **flags: Any) -> None:
    """Write mcptrials.yaml and drafts of tasks for a server.

    The server is started once and its tools are listed. Without COMMAND, --url and --from the folder's .mcp.json,
    .vscode/mcp.json or .cursor/mcp.json is used. What exists is never overwritten; secrets are never written.
    """
    if flags["settings"]:
        raise UsageError("--set does not go with init", hint="edit the file that it writes")
    console = messages()

    def notice(text: str) -> None:
        if not (flags["quiet"] or flags["as_json"]):
            console.print(safe(one_line(text), "dim"))

    entries, client_file = _entries(command, flags)
    if client_file:
        notice(f"servers of {from_here(str(client_file.path))}")
    path = Path(flags["into"]) / flags["project_file"]
    starter = Starter(path, entries, os.environ, offline=flags["offline"])
    keep_secret(starter.variables.secrets)
    started = starter.start(notice)
    warnings = (*(client_file.notices if client_file else ()), *started.notices)
    if not flags["as_json"]:
        _print(started, warnings, quiet=flags["quiet"])
    end(Outcome(_data(started, client_file), warnings=warnings))


def _entries(command: Sequence[str], flags: Mapping[str, Any]) -> tuple[Sequence[Entry], ClientFile | None]:
    sources = {"a command": command, "--url": flags["url"], "--from": flags["client_file"]}
    given = [name for name, value in sources.items() if value]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} are given", hint="choose one source of servers")
    if command:
        return [from_command(command, flags["server"], Path.cwd())], None
    if flags["url"]:
        return [from_url(flags["url"], flags["server"], Path.cwd())], None
    path = Path(flags["client_file"]) if flags["client_file"] else find_client_file(Path.cwd())
    found = read_client_file(path, flags["server"])
    return found.entries, found


def _print(started: Started, warnings: Sequence[str], *, quiet: bool) -> None:
    for line in _lines(started):
        output().print(safe(one_line(line)))
    for warning in () if quiet else warnings:
        messages().print(safe(f"warning: {one_line(warning)}", "yellow"))


def _lines(started: Started) -> Iterator[str]:
    for name, (entry, found) in started.added.items():
        yield f"server {name}: {describe(entry, found) if found else f'{entry.transport}, not started'}"
    for name in started.kept:
        yield f"server {name}: is in {_short(started.project_file)} already and was left as it is"
    files = {"wrote": started.created, "added to": started.extended, "left as they are:": started.untouched}
    for what, paths in files.items():
        if paths:
            yield f"{what} {', '.join(map(_short, paths))}"
    for name in started.variables.unset:
        yield f"export {name}=...  # server {started.variables.servers[name]}"
    if started.drafts:
        yield from _next(started)


def _next(started: Started) -> Iterator[str]:
    here = _short(started.project_file)
    found = [each for _, each in started.added.values() if each]
    if started.project_file in started.created and not all(read_only(tool) for each in found for tool in each.tools):
        yield f"next: declare an 'environment' in {here}: without one, tools that may write are not shown to the model"
    yield f"next: complete the {counted(started.drafts, 'draft')}, and remove 'draft: true'"
    named = () if here == DEFAULT_FILE else ("--project", here)
    check, run = (shlex.join(["mcptrials", command, *named]) for command in ("check", "run"))
    yield f"next: {check}, and then: {run}"


def _short(path: Path) -> str:
    return from_here(str(path))


def _data(started: Started, client_file: ClientFile | None) -> dict[str, Any]:
    return {
        "source": str(client_file.path) if client_file else None,
        "project_file": str(started.project_file),
        "files": {
            "created": [str(path) for path in started.created],
            "extended": [str(path) for path in started.extended],
            "untouched": [str(path) for path in started.untouched],
        },
        "servers": [_server(name, *each) for name, each in started.added.items()],
        "kept": list(started.kept),
        "drafts": started.drafts,
        "variables": [
            {"name": name, "server": started.variables.servers[name], "set": name not in started.variables.unset}
            for name in started.variables.values
        ],
    }


def _server(name: str, entry: Entry, found: Any) -> dict[str, Any]:
    facts = ("era", "protocol_version", "version", "startup_ms", "instructions", "definition_tokens")
    values = {fact: getattr(found, fact) if found else None for fact in facts}
    return {
        "name": name,
        "transport": entry.transport,
        **values,
        "tools": [tool["name"] for tool in found.tools] if found else None,
        "problems": list(found.problems) if found else None,
    }
