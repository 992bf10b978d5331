"""One server, started once: what it says of itself, how it behaves when asked for nonsense, how it ends."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from mcptrials import plugins
from mcptrials.audit.line import Level, Line
from mcptrials.audit.listing import listing_lines, relisting_line
from mcptrials.audit.probing import probe_lines
from mcptrials.counting import counted
from mcptrials.environment import Environment, TrialPlaces
from mcptrials.errors import TrialError
from mcptrials.presentation import RawTool, ToolFilter, without_injected
from mcptrials.project import ServerConfig
from mcptrials.protocols import Limits, Place, Server, ServerExit, SessionHooks
from mcptrials.runner.preflight import no_wire
from mcptrials.runner.unstarted import start_hint
from mcptrials.servers.asking import Client

STDERR_BYTES = 1 << 20
"""More of it, from a start and a few calls, is worth a word."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a server is tried, and what is asked of it."""

    label: str
    config: ServerConfig
    filters: Sequence[ToolFilter]
    environment: Environment
    places: TrialPlaces
    limits: Limits
    where: Callable[..., str]
    """The place of one of its keys in the project file."""


@dataclass
class Served:
    """What came of it."""

    label: str
    lines: list[Line] = field(default_factory=list)
    tools: Sequence[RawTool] = ()
    filters: Sequence[ToolFilter] = ()
    whole: bool = False
    """Whether these are all tools that it has."""

    @property
    def shown(self) -> list[RawTool]:
        """The tools that at least one task shows, as it shows them: what is injected is the same for all tasks."""
        shown = [tool for tool in self.tools if any(each.shows(tool) for each in self.filters)]
        return [without_injected(tool, self.filters[0]) for tool in shown]

    def say(self, level: Level, what: str, fix: str | None = None, **facts: Any) -> None:
        self.lines.append(Line("servers", level, self.label, what, fix, facts))


class _Breaches:
    """What a server wrote that is no answer, by kind."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def hooks(self) -> SessionHooks:
        return SessionHooks(self._add, lambda *_: None)

    def _add(self, what: str, detail: str) -> None:
        self.count[what] += 1
        self.first.setdefault(what, detail)


async def serve(server: Server, ground: Ground) -> Served:
    """Starts a server, tries it and ends it."""
    served, breaches = Served(ground.label, filters=ground.filters), _Breaches()
    place = ground.places.make(no_wire)
    try:
        await ground.environment.prepare(place)
        ended = await _try(server, ground, place, served, breaches)
        _tell_breaches(served, breaches)
        if ended is not None:
            _tell_end(served, ended)
    except TrialError as exc:
        key, fix = start_hint(exc, ground.config, ground.places.project_dir)
        served.say("fail", f"{ground.where(*key)}: {exc.message}", fix)
    finally:
        ground.places.remove(place)
    return served


async def _try(server: Server, ground: Ground, place: Place, served: Served, breaches: _Breaches) -> ServerExit | None:
    open_session = plugins.load("servers", "session")
    connect_s = ground.limits.connect_seconds
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(server.open(place))
        client = Client(ground.config.client_policy, place.trial_dir)
        session = await stack.enter_async_context(
            open_session(
                server.name, channel, breaches.hooks(), era=ground.config.era, connect_s=connect_s, client=client
            )
        )
        served.tools, served.whole = tuple(session.tools), not session.problems
        _tell_start(served, session)
        served.lines += listing_lines(ground.label, session, ground.config)
        probes = await probe_lines(ground.label, session, ground.filters, ground.limits.call_seconds)
        served.lines += probes
        if all(line.level != "fail" for line in probes):
            served.lines.append(await relisting_line(ground.label, session, connect_s))
    return channel.exited()


def _tell_start(served: Served, session: Any) -> None:
    name = f"{session.name or 'without a name'} {session.version or ''}".strip()
    said = f"started in {session.startup_ms / 1000:.1f} s: {name}, {session.era} era ({session.protocol_version})"
    served.say("ok", said, None, startup_ms=session.startup_ms, era=session.era, tools_hash=session.tools_hash)
    if session.instructions:
        told = f"instructions of {len(session.instructions)} characters (some hosts show them)"
        served.say("ok", told, None, instructions=len(session.instructions))


def _tell_breaches(served: Served, breaches: _Breaches) -> None:
    """Spec, basic/transports/stdio: stdout holds nothing but messages."""
    noise = breaches.count.pop("stdout_not_json", 0)
    if noise:
        lines = counted(noise, "line on its stdout is no message", "lines on its stdout are no messages")
        what = f"{lines}; strict hosts refuse it: {breaches.first['stdout_not_json']}"
        served.say("warn", what, "write logs to stderr", lines=noise)
    for kind, count in breaches.count.items():
        what = f"broke the protocol: {kind}, {counted(count, 'time')}, first: {breaches.first[kind]}"
        served.say("warn", what, "mend the server, or update its SDK", kind=kind, count=count)
    if not noise and "not_json" not in breaches.count:
        served.say("ok", "sends nothing but messages")


def _tell_end(served: Served, ended: ServerExit) -> None:
    facts = {"exit_code": ended.exit_code, "how": ended.how, "ms": ended.ms, "left": ended.left_processes}
    if ended.how in ("terminated", "killed"):
        what = f"did not exit when its input ended; it was {ended.how} after {ended.ms / 1000:.1f} s"
        served.say("warn", what, "exit when stdin is closed: hosts leave such servers behind", **facts)
    elif ended.how == "crashed":
        served.say("warn", f"ended by itself with exit code {ended.exit_code}", "see the lines above", **facts)
    elif ended.exit_code:
        what = f"ended with exit code {ended.exit_code} when its input ended"
        served.say("warn", what, "exit with code 0 when stdin is closed", **facts)
    else:
        served.say("ok", f"exited {ended.ms / 1000:.1f} s after its input ended", None, **facts)
    if ended.left_processes:
        what = f"left {counted(ended.left_processes, 'process', 'processes')} running, until killed"
        served.say("warn", what, "end what the server starts when it ends itself", **facts)
    if ended.stderr_bytes > STDERR_BYTES:
        what = f"wrote {ended.stderr_bytes >> 10} KiB to its stderr in a few calls"
        served.say("warn", what, "log less by default", stderr_bytes=ended.stderr_bytes)
