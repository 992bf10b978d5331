"""Deterministic checks before any spend: the project's commands, the environment, the servers, the models."""

import inspect
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from mcptrials import plugins
from mcptrials.dialect import adapt
from mcptrials.environment import Environment, Reader, Snapshot, ToolReader, TrialPlaces, take_snapshot
from mcptrials.environment.command import last_line, run_command
from mcptrials.environment.remains import ReadError
from mcptrials.errors import HarnessError, ProviderError, TrialError, UsageError
from mcptrials.events import ToolShown
from mcptrials.models.patient import Patient, Pause, RetryPolicy
from mcptrials.overrides import NOTHING, Overrides
from mcptrials.overrides import check as check_overrides
from mcptrials.presentation import ToolFilter, amiss, present_tools, without_injected
from mcptrials.project import ModelConfig, Project, ServerConfig
from mcptrials.protocols import Model, Place, Reply, Server, SessionHooks, Startable, User, unheard
from mcptrials.rollout import TrialClock
from mcptrials.runner.hidden import why_hidden
from mcptrials.runner.unstarted import start_hint
from mcptrials.servers.asking import Client
from mcptrials.source import nearest
from mcptrials.trial import TrialKey

COMMAND_TIMEOUT_S = 600.0
FIRST_REPLY_S = 330.0
LOCAL_OUTPUT_TOKENS = 512
"""A small model that rambles instead of calling is cut off before that takes minutes."""
PATIENCE = RetryPolicy(attempts=3, total_wait_s=30)
"""A provider that cannot answer a first request soon is reported at once."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server said of itself when it was started once."""

    server: str
    name: str | None
    version: str | None
    protocol_version: str | None
    era: Literal["modern", "legacy"]
    tools_hash: str
    tools: tuple[Mapping[str, Any], ...]
    instructions: str | None
    problems: tuple[str, ...]
    launch: Mapping[str, Any] | None = None
    """What its package runner starts, and of which version."""
    sandbox: Mapping[str, Any] | None = None
    """What of its sandbox is in force; None: nothing."""
    fork: Mapping[str, Any] | None = None
    """What was imported before its processes are forked; None: they are not."""
    start_s: float = 0.0
    """From its start to the list of its tools."""


class NoWire:
    """Preflight traffic belongs to no trial."""

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None:
        pass

    def close(self) -> None:
        pass


def no_wire(server: str) -> NoWire:
    del server
    return NoWire()


async def run_commands(project: Project, place: Place) -> None:
    """The project's own checks, such as the server's unit tests.

    Raises:
        UsageError: one does not pass.
    """
    for argv in project.config.preflight:
        command = [place.expand(item) for item in argv]
        try:
            code, output, errors = await run_command(command, place, COMMAND_TIMEOUT_S)
        except ReadError as exc:
            raise UsageError(f"preflight: {exc}", where=str(project.path), hint="mend or remove it") from exc
        if code != 0:
            what = f"preflight command {' '.join(argv)!r} exited with code {code}: {last_line(errors or output)}"
            raise UsageError(what, where=str(project.path), hint="an evaluation starts only after it passes")


async def pristine_hash(environment: Environment, places: TrialPlaces) -> str | None:
    """Prepares the environment twice; both must come out alike.

    Raises:
        UsageError: the reset fails or does not give one state.
    """
    hashes = []
    for _ in range(2 if environment.spec.reset else 1):
        place = places.make(no_wire)
        try:
            hashes.append(await environment.check(place))
        except HarnessError as exc:
            raise UsageError(exc.message, where="environment", hint="mend 'files' and 'reset'") from exc
        finally:
            places.remove(place)
    if len(set(hashes)) > 1:
        what = "two resets give two states: their hashes differ"
        raise UsageError(what, where="environment", hint="make 'reset' deterministic or narrow 'state_hash'")
    return hashes[0]


async def pristine_snapshot(environment: Environment, places: TrialPlaces) -> Snapshot:
    """All that a trial starts from, for readers of changes.

    Raises:
        UsageError: it cannot be made or read.
    """
    place = places.make(no_wire)
    try:
        await environment.check(place)
        return await to_thread.run_sync(take_snapshot, place.trial_dir)
    except (HarnessError, ReadError, OSError, ValueError, sqlite3.Error) as exc:
        what = f"what a trial changes cannot be found out: {exc}"
        raise UsageError(what, where="environment", hint="mend it, or take another grader") from exc
    finally:
        places.remove(place)


async def try_servers(
    servers: Mapping[str, Server],
    configs: Mapping[str, ServerConfig],
    environment: Environment,
    places: TrialPlaces,
    connect_s: float,
    where: Callable[..., str],
) -> dict[str, ServerFacts]:
    """Starts every server of a variant once and lists its tools.

    Args:
        where: the place of a server's key in the project file.

    Raises:
        UsageError: one does not start, or lists tools that no client can use.
    """
    place = places.make(no_wire)
    open_session = plugins.load("servers", "session")
    facts: dict[str, ServerFacts] = {}
    tried: str | None = None
    try:
        await environment.prepare(place)
        async with AsyncExitStack() as stack:
            for name, server in servers.items():
                tried, config, began_s = name, configs[name], time.monotonic()
                channel = await stack.enter_async_context(server.open(place))
                hooks, client = SessionHooks(unheard, unheard), Client(config.client_policy, place.trial_dir)
                session = await stack.enter_async_context(
                    open_session(name, channel, hooks, era=config.era, connect_s=connect_s, client=client)
                )
                facts[name] = replace(_facts(session), start_s=time.monotonic() - began_s)
    except TrialError as exc:
        key, hint = start_hint(exc, configs[tried], environment.project_dir) if tried else ((), "mend the environment")
        raise UsageError(exc.message, where=tried and where(tried, *key), hint=hint) from exc
    finally:
        places.remove(place)
    for name, config in configs.items():
        _refuse_broken_list(facts[name], config)
    return facts


def _facts(session: Any) -> ServerFacts:
    return ServerFacts(
        server=session.server,
        name=session.name,
        version=session.version,
        protocol_version=session.protocol_version,
        era=session.era,
        tools_hash=session.tools_hash,
        tools=tuple(session.tools),
        instructions=session.instructions,
        problems=tuple(session.problems),
    )


def _refuse_broken_list(facts: ServerFacts, config: ServerConfig) -> None:
    where = f"server {facts.server!r}"
    if facts.problems and config.on_invalid_tool == "stop":
        what = f"its tool list is broken: {'; '.join(facts.problems[:5])}"
        raise UsageError(what, where=where, hint="mend the server, or set on_invalid_tool: drop to go on without them")
    names = [str(tool["name"]) for tool in facts.tools]
    for name in (*(config.tools.allow or ()), *config.tools.hide):
        if name not in names:
            raise UsageError(f"it has no tool {name!r} to allow or hide", where=where, hint=nearest(name, names))
    for problem in amiss(config.tools.inject, facts.tools):
        raise UsageError(f"it {problem}", where=where, hint=f"mend servers.{facts.server}.tools.inject")


def refuse_unknown_tools(facts: Mapping[str, ServerFacts], readers: Iterable[Reader]) -> None:
    """What a reader asks for after a trial must be there; that the model may see it is not needed.

    Raises:
        UsageError: names the nearest tool.
    """
    for reader in readers:
        if isinstance(reader, ToolReader) and facts:
            server, tool = reader.target(facts)
            names = [str(each["name"]) for each in facts[server].tools]
            if tool not in names and not facts[server].problems:
                what = f"it has no tool {tool!r}, which a reader asks for"
                raise UsageError(what, where=f"server {server!r}", hint=nearest(tool, names))


def refuse_overrides(overrides: Overrides, facts: Mapping[str, ServerFacts], file: str | None) -> None:
    """What is told instead must be about something that is there.

    Raises:
        UsageError: names the nearest that is.
    """
    check_overrides(overrides, {name: each.tools for name, each in facts.items()}, file or "naming")


def refuse_empty_toolset(
    facts: Mapping[str, ServerFacts],
    configs: Mapping[str, ServerConfig],
    filters: Mapping[str, ToolFilter],
    overrides: Overrides = NOTHING,
) -> None:
    """A model that sees no tool evaluates no server.

    Raises:
        UsageError: names the key that shows tools.
    """
    shown, _ = present_tools({name: each.tools for name, each in facts.items()}, filters, overrides=overrides)
    if facts and not shown:
        hidden = [(name, each.tools[0]) for name, each in facts.items() if each.tools]
        why, hint = "no server lists one", "mend the servers"
        if hidden:
            name, tool = hidden[0]
            why, hint = why_hidden(name, tool, configs[name], filters[name])
        where = ", ".join(f"server {name!r}" for name in facts)
        raise UsageError(f"no tool is shown to the model: {why}", where=where, hint=hint)


def refuse_tools(model: ModelConfig, facts: Mapping[str, ServerFacts], filters: Mapping[str, ToolFilter]) -> None:
    """A provider that refuses one tool refuses every request: better said before any spend.

    Raises:
        UsageError: names the tool and the place in its schema.
    """
    dialect, where = model.dialect, f"model {model.model!r}"
    shown = [(name, tool) for name, each in facts.items() for tool in each.tools if filters[name].shows(tool)]
    if dialect.max_tools is not None and len(shown) > dialect.max_tools:
        what = f"{dialect.name} takes {dialect.max_tools} tools at most, and {len(shown)} are shown"
        raise UsageError(what, where=where, hint="choose some with servers.<name>.tools.allow or tools.hide")
    hint = "mend the server, hide the tool with tools.hide, or give the model 'schema: exact' to try it as it is"
    for server, tool in shown:
        shown_tool = without_injected(tool, filters[server])
        for first in adapt(shown_tool.get("inputSchema"), dialect).obstacles[:1]:
            what = f"{dialect.name} refuses tool {server + '/' + tool['name']!r}: {first.path} {first.what}"
            raise UsageError(what, where=where, hint=hint)


def make_model(config: ModelConfig, project_dir: Path, progress: Callable[[str, int, int], None]) -> Model:
    """The model that a spec names, built from its adapter and the settings beside it.

    Raises:
        UsageError: unknown adapter, or settings that it does not take.
    """
    name = config.model.partition(":")[2]
    factory = plugins.load("models", config.adapter, project_dir)
    given = {"base_url": config.base_url, "api_key": config.api_key, "headers": config.headers or None}
    settings: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    taken = inspect.signature(factory).parameters
    offered = {"project_dir": project_dir, "progress": progress}
    settings |= {key: value for key, value in offered.items() if key in taken}
    unknown = [key for key in settings if key not in taken]
    if unknown:
        raise UsageError(f"model {config.model!r} takes no {unknown[0]!r}", hint="remove the key")
    model: Model = factory(**settings) if config.adapter == config.model else factory(name, **settings)
    return model


def is_free(config: ModelConfig) -> bool:
    """Whether a model costs nothing: local, scripted, or on the loopback interface."""
    if config.model.split(":")[0] in ("local", "scripted"):
        return True
    host = urlsplit(config.base_url or "").hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


async def try_model(config: ModelConfig, model: Model, output_tokens: int) -> str | None:
    """One request with one tool: proves the key, the name and that tools are taken. Gives a warning, or None.

    Args:
        output_tokens: the limit of the trials' requests, which other settings (a budget for thinking) must fit into.

    Raises:
        UsageError: the provider refuses.
    """
    if model.scripted:
        return None
    probe = ToolShown(
        shown_name="ready",
        server="preflight",
        tool="ready",
        description="Says that you are ready.",
        input_schema={"type": "object", "properties": {}},
    )
    trial = TrialKey(task_id="preflight", arm="preflight", number=1, attempt=1, seed=1)
    patient = Patient(model, Pause(), TrialClock(), lambda _: None, lambda _: None, PATIENCE)
    try:
        if isinstance(model, Startable):
            await model.start()
        with anyio.fail_after(FIRST_REPLY_S):
            ask = User("Call the tool `ready` now, with no arguments.")
            limit = min(output_tokens, LOCAL_OUTPUT_TOKENS) if config.adapter == "local" else output_tokens
            reply = await patient.request([ask], [probe], {"max_tokens": limit} | config.settings, trial)
    except ProviderError as exc:
        raise UsageError(f"model {config.model!r}: {exc.message}", hint=_hint(exc)) from exc
    except (TimeoutError, TrialError) as exc:
        raise UsageError(f"model {config.model!r}: {exc}", hint="check that it runs") from exc
    return _of_note(config.model, reply)


def _of_note(model: str, reply: Reply) -> str | None:
    found = []
    if reply.stop != "calls":
        found.append("called no tool when it was asked to; its trials may show the same")
    if reply.dropped:
        found.append(f"does not take {', '.join(reply.dropped)}, which will not be sent")
    return f"model {model!r} {' and '.join(found)}" if found else None


def _hint(error: ProviderError) -> str | None:
    if error.cause == "http" and error.status is not None and error.status >= _SERVER_ERROR:
        return "wait and run again; the provider's status page may say more"
    if error.cause == "http" and error.retryable:
        return "check that 'base_url' is an API's address; if it is, wait and run again"
    return _HINTS.get(error.cause)


_SERVER_ERROR = 500
_HINTS = {
    "auth": "check 'api_key' of the model in the project file, or that environment variable",
    "quota": "check the account's balance",
    "rate_limit": "wait, or lower 'concurrency'",
    "connection": "check 'base_url' and that the endpoint runs",
    "timeout": "check 'base_url' and that the endpoint runs",
    "http": "check the model's name and 'settings'",
}
