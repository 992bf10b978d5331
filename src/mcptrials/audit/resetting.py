"""Resetting: whether what one trial writes is gone in the next, tried with the calls of a task's reference solution."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mcptrials import excerpt, plugins
from mcptrials.audit.line import Line
from mcptrials.encoding import dump_text
from mcptrials.environment import Environment
from mcptrials.errors import TrialError
from mcptrials.presentation import RawTool, read_only
from mcptrials.project import Project, ServerConfig
from mcptrials.protocols import Limits, Place, Server, ServerSession, SessionHooks
from mcptrials.runner.building import Workshop
from mcptrials.runner.preflight import no_wire
from mcptrials.servers.asking import Client
from mcptrials.task import ReferenceCall, Task

MAX_TRIED = 5
"""References that are tried until what one writes is seen."""
MAX_LOOKS = 10
"""Tools that are asked what there is."""
MAX_FILES = 1000
"""Of a directory that trials share."""
_WORD = re.compile(r"\w[\w.-]{2,}\w")
_DATABASE = "sqlite://"
_SHOWN = 120

Shown = Mapping[str, Sequence[RawTool]]
"""By server: the tools that a task shows."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """A task's calls with one variant of the servers."""

    task: Task
    calls: Sequence[tuple[str, ReferenceCall]]
    """With the server of each."""
    configs: Mapping[str, ServerConfig]
    servers: Mapping[str, Server]
    environment: Environment
    limits: Limits


@dataclass(frozen=True, slots=True)
class _Seen:
    """One trial of it."""

    clean: str | None
    """Hash of the state that it began with."""
    left: str | None
    """And of the state that it ended with."""
    before: str
    """What the tools that read say at first."""
    after: str
    """And after the calls."""
    replies: tuple[str, ...]
    failed: str | None
    """The first tool that did not do what it was called for."""
    landed: bool
    """Whether the calls change files of the trial's directory."""


async def reset_lines(project: Project, workshop: Workshop, shown: Shown) -> list[Line]:
    """One proof for each variant; nothing is claimed where no reference solution writes."""
    lines = []
    for variant, configs in _variants(project):
        found = [each for task in project.suite.tasks if (each := _writing(project, task, configs, shown))]
        if not found:
            what = "not proved: no task has a reference whose calls write through a server that a trial starts"
            lines.append(Line("environment", "ok", f"reset ({variant})", what))
            continue
        servers = await workshop.servers(variant)
        for task, calls in found[:MAX_TRIED]:
            tried = _Tried(task, calls, configs, servers, workshop.environment(task), project.limits(task))
            proof = await _tried_lines(f"reset ({variant})", tried, project, workshop)
            if not any(line.facts.get("unseen") for line in proof):
                break
        lines += proof
    return lines


async def _tried_lines(subject: str, tried: _Tried, project: Project, workshop: Workshop) -> list[Line]:
    try:
        return await _prove(subject, tried, project, workshop)
    except TrialError as exc:
        what = f"not proved: task {tried.task.id}: {exc.message}"
        return [Line("environment", "warn", subject, what, "see the lines above and below")]


def _variants(project: Project) -> Iterator[tuple[str, Mapping[str, ServerConfig]]]:
    """Those with servers, each set of servers once."""
    seen: list[Mapping[str, ServerConfig]] = []
    for variant in project.config.variants:
        configs = project.config.servers_of(variant)
        if configs and configs not in seen:
            seen.append(configs)
            yield variant, configs


def _writing(
    project: Project, task: Task, configs: Mapping[str, ServerConfig], shown: Shown
) -> tuple[Task, list[tuple[str, ReferenceCall]]] | None:
    """A task with calls of which one writes, if a trial may do that and starts the servers itself."""
    calls, writes = [], False
    for call in task.reference.calls if task.reference and task.split == "train" else ():
        named = [call.server] if call.server else list(configs)
        tools = [(name, tool) for name in named for tool in shown.get(name, ()) if tool["name"] == call.tool]
        if not tools or tools[0][0] not in configs:
            return None
        name, tool = tools[0]
        if configs[name].url is not None or project.writes(task, configs[name]) == "denied":
            return None
        writes = writes or not read_only(tool)
        calls.append((name, call))
    return (task, calls) if writes else None


async def _prove(subject: str, tried: _Tried, project: Project, workshop: Workshop) -> list[Line]:
    """Two trials that do the same: nothing of the first may show in the second."""
    seen: list[_Seen] = []
    shared = _shared_paths(tried.configs, project.dir)
    as_was = {path: _print(path) for path in shared}
    for _ in range(2):
        place = workshop.places.make(no_wire)
        try:
            seen.append(await _trial(tried, place))
        finally:
            workshop.places.remove(place)
    first, second = seen
    fix, where = "keep the state in {trial_dir}, or undo it in environment.reset", f"task {tried.task.id}"
    faults = [Line("environment", "fail", subject, f"{where}: {what}", fix) for what in _faults(first, second)]
    touched = [
        Line("environment", "warn", subject, f"{where}: its calls change {said!r}, which all trials share", fix)
        for path, said in shared.items()
        if _print(path) != as_was[path]
    ]
    return [*faults, *touched] or [_verdict(subject, tried.task, first, second)]


def _faults(first: _Seen, second: _Seen) -> Iterator[str]:
    if first.clean != second.clean:
        yield "after its reference's calls the reset gives another state than before them"
    written = _words(first.after) - _words(first.before)
    if kept := sorted(written & _words(second.before)):
        yield f"what one trial wrote is there in the next: {excerpt.beginning(kept[0], _SHOWN)!r}"


def _words(text: str) -> set[str]:
    """Those that are long enough to be found again by no chance."""
    return set(_WORD.findall(text))


def _verdict(subject: str, task: Task, first: _Seen, second: _Seen) -> Line:
    if first.failed:
        what = f"not proved: task {task.id}: its reference's call of {first.failed!r} failed"
        return Line("environment", "warn", subject, what, "mend the reference")
    for one, other in zip(first.replies, second.replies, strict=True):
        if one != other:
            shown = " and then ".join(repr(excerpt.beginning(each, _SHOWN)) for each in (one, other))
            what = f"task {task.id}: equal calls in two trials are answered by {shown}"
            fix = "right for times and random ids; else the server keeps state that no reset reaches"
            return Line("environment", "warn", subject, what, fix)
    if first.left == first.clean and not first.landed and first.before == first.after:
        what = f"not proved: nothing that the calls of task {task.id} write is seen in its hash, directory or tools"
        fix = "annotate reading tools with readOnlyHint, or name what is written in environment.state_hash"
        return Line("environment", "warn", subject, what, fix, {"unseen": True})
    seen = "which its hash shows" if first.left != first.clean else "though no hash shows it"
    what = f"proved with task {task.id}: it writes, {seen}, and the next trial begins as if it had not"
    return Line("environment", "ok", subject, what, None, {"hashed": first.clean is not None})


async def _trial(tried: _Tried, place: Place) -> _Seen:
    clean = await tried.environment.check(place)
    open_session = plugins.load("servers", "session")
    sessions: dict[str, ServerSession] = {}
    async with AsyncExitStack() as stack:
        for name, server in tried.servers.items():
            channel = await stack.enter_async_context(server.open(place))
            hooks = SessionHooks(lambda *_: None, lambda *_: None)
            config, connect_s = tried.configs[name], tried.limits.connect_seconds
            client = Client(config.client_policy, place.trial_dir)
            opened = open_session(name, channel, hooks, era=config.era, connect_s=connect_s, client=client)
            sessions[name] = await stack.enter_async_context(opened)
        files = _print(place.trial_dir)
        before = await _look(sessions, place, tried.limits)
        replies, failed = [], None
        for name, call in tried.calls:
            answer = await sessions[name].call(call.tool, call.args, tried.limits.call_seconds)
            failed = failed or (call.tool if answer.status != "ok" else None)
            replies.append(_plain(answer.result if answer.error is None else answer.error, place))
        landed = _print(place.trial_dir) != files
        after = await _look(sessions, place, tried.limits)
    left = await tried.environment.state_hash(place)
    return _Seen(clean, left, before, after, tuple(replies), failed, landed)


async def _look(sessions: Mapping[str, ServerSession], place: Place, limits: Limits) -> str:
    """What the tools say that only read and need not be told what to read."""
    said = []
    for session in sessions.values():
        for tool in islice((each for each in session.tools if read_only(each) and not _required(each)), MAX_LOOKS):
            answer = await session.call(tool["name"], {}, limits.call_seconds)
            said.append(_plain(answer.result, place))
    return "\n".join(said)


def _required(tool: RawTool) -> Any:
    schema = tool.get("inputSchema")
    return schema.get("required") if isinstance(schema, Mapping) else None


def _plain(value: Any, place: Place) -> str:
    """As text, in which the directory of the trial does not show."""
    return dump_text(value).replace(str(place.trial_dir), "{trial_dir}")


def _shared_paths(configs: Mapping[str, ServerConfig], project_dir: Path) -> dict[Path, str]:
    """Files and directories that servers are given and that are not of the trial, with how they are written."""
    found = {}
    for config in configs.values():
        for word in (*config.args, *config.env.values()):
            text = word.partition("=")[2] if word.startswith("--") and "=" in word else word
            text = text.partition(_DATABASE)[2].removeprefix("/") or text
            path = project_dir / (config.cwd or ".") / text.replace("{project_dir}", str(project_dir))
            if text and "{trial_dir}" not in text and "\0" not in text and not project_dir.is_relative_to(path):
                found[path] = text
    return found


def _print(path: Path) -> Any:
    """Time and size of a file, or of those in a directory; None of what is no path."""
    try:
        inside = path.rglob("*") if path.is_dir() else [path]
        found = [each for each in islice(inside, MAX_FILES) if each.is_file() and "__pycache__" not in each.parts]
        return [(str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in found]
    except OSError:
        return None
