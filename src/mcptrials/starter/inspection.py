"""Inspection: what a server says of itself when it is started once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcptrials import plugins
from mcptrials.environment import TrialPlaces
from mcptrials.errors import TrialError, UsageError
from mcptrials.presentation import BYTES_PER_TOKEN, RawTool, definition_bytes
from mcptrials.protocols import Server, SessionHooks
from mcptrials.redaction import Redactor
from mcptrials.runner.preflight import no_wire
from mcptrials.starter.entry import Entry
from mcptrials.starter.variables import Variables

CONNECT_S = 60.0
"""Package runners may have to fetch the server first."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """One server, as it was found."""

    era: str
    protocol_version: str | None
    name: str | None
    version: str | None
    startup_ms: float
    instructions: bool
    tools: Sequence[RawTool]
    problems: Sequence[str]

    @property
    def definition_tokens(self) -> int:
        """About what the tool definitions cost in every request."""
        return round(definition_bytes(self.tools) / BYTES_PER_TOKEN)


async def inspect(entry: Entry, workspace: str, variables: Variables, places: TrialPlaces) -> Inspection:
    """Starts a server once, in a directory of its own, and lists its tools.

    Args:
        entry: without secrets.
        workspace: how the entry writes its base folder.

    Raises:
        UsageError: it does not start, or a variable has no value.
    """
    place = places.make(no_wire)
    open_session = plugins.load("servers", "session")
    hooks, redactor = SessionHooks(lambda *_: None, lambda *_: None), Redactor(variables.secrets)
    try:
        async with (
            _server(_filled(entry, workspace, variables)).open(place) as channel,
            open_session(entry.name, channel, hooks, connect_s=CONNECT_S) as session,
        ):
            return _inspected(session, redactor)
    except TrialError as exc:
        first = "run its command by hand" if entry.url is None else "check the address, its headers and that it runs"
        hint = f"{first}, choose another with --server, or write without starting it: --offline"
        raise UsageError(redactor.text(exc.message), hint=hint) from exc
    finally:
        places.remove(place)


def _server(entry: Entry) -> Server:
    plug = plugins.load("servers", entry.transport)
    given = {"command": entry.command, "args": entry.args, "env": dict(entry.env), "cwd": entry.cwd}
    if entry.url is not None:
        given = {"url": entry.url, "headers": dict(entry.headers)}
    server: Server = plug(name=entry.name, **given)
    return server


def _filled(entry: Entry, workspace: str, variables: Variables) -> Entry:
    """The entry with the values of its variables and its real folders."""
    missing = [name for name, value in variables.values.items() if value is None and variables.needs(entry, name)]
    if missing:
        what = f"the environment variable {missing[0]!r} is not set"
        hint = f"export {missing[0]}=... and run again, or write without starting the server: --offline"
        raise UsageError(what, where=f"server {entry.name!r}", hint=hint)

    def fill(text: str) -> str:
        return variables.fill(text.replace(workspace, str(entry.base)))

    return replace(
        entry,
        command=None if entry.command is None else fill(entry.command),
        args=tuple(map(fill, entry.args)),
        env={name: fill(value) for name, value in entry.env.items()},
        cwd=str(entry.base / fill(entry.cwd or ".")),
        url=None if entry.url is None else fill(entry.url),
        headers={name: fill(value) for name, value in entry.headers.items()},
    )


def _inspected(session: Any, redactor: Redactor) -> Inspection:
    """What the server says may hold what it was given: secrets are taken out at once."""
    tools: list[Mapping[str, Any]] = [redactor.value(tool) for tool in session.tools]
    return Inspection(
        era=session.era,
        protocol_version=session.protocol_version,
        name=None if session.name is None else redactor.text(session.name),
        version=None if session.version is None else redactor.text(session.version),
        startup_ms=session.startup_ms,
        instructions=bool(session.instructions),
        tools=tools,
        problems=[redactor.text(problem) for problem in session.problems],
    )
