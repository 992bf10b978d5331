"""The order of an audit, from files to numbers; nothing stops at the first fault."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio

from mcptrials.audit.answering import answer_lines
from mcptrials.audit.line import Audit, Line
from mcptrials.audit.modelling import model_lines
from mcptrials.audit.naming import Listed, Names
from mcptrials.audit.numbers import number_lines
from mcptrials.audit.places import World, hash_lines, server_lines, worlds_of
from mcptrials.audit.providers import provider_lines, tool_rows
from mcptrials.audit.resetting import reset_lines
from mcptrials.audit.serving import Ground, Served, serve
from mcptrials.audit.tasks import Named, task_findings
from mcptrials.counting import counted
from mcptrials.errors import UsageError
from mcptrials.overrides import check as check_overrides
from mcptrials.presentation import RawTool
from mcptrials.project import Project, ServerConfig
from mcptrials.redaction import Redactor
from mcptrials.runner.apart import suspects
from mcptrials.runner.building import Workshop
from mcptrials.runner.hidden import how_to_show, why_hidden
from mcptrials.runner.options import Silent
from mcptrials.runner.selection import pick, select_models
from mcptrials.runner.watchdog import watched
from mcptrials.servers.confinement import Confinement
from mcptrials.task import Task


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A server as one variant or several have it."""

    label: str
    name: str
    variant: str
    config: ServerConfig


def check_project(
    project: Project,
    models: Sequence[str],
    *,
    offline: bool,
    notice: Callable[[str], None],
    only: str | None = None,
) -> Audit:
    """The whole audit of a project that could be loaded.

    Args:
        models: specs besides the project's own.
        offline: make no request to any model.
        notice: hears what takes its time.
        only: which tasks are rehearsed, as for a run; by default all.

    Raises:
        UsageError: a model's spec that names no adapter; no such task.
    """
    named = [each.model for each in project.config.models]
    config = select_models(project.config, (*named, *models)) if models else project.config
    tasks = project.suite.tasks if only is None else pick(project.suite.tasks, only)
    return anyio.run(_check, replace(project, config=config), tasks, offline, notice)


async def _check(project: Project, tasks: Sequence[Task], offline: bool, notice: Callable[[str], None]) -> Audit:
    workshop = Workshop(project, project.suite, Silent(), Redactor(project.secrets))
    try:
        with watched(workshop.places.root):
            lines = [*_file_lines(project), *answer_lines(project), *await _environment_lines(project, workshop)]
            worlds = await worlds_of(project, workshop)
            lines += hash_lines(project, workshop, worlds)
            at, served = len(lines), {}
            for asked in _servers(project):
                notice(f"starting {asked.label}")
                served[asked] = await _serve(asked, project, workshop)
                lines += [*served[asked].lines, *_path_lines(asked, project, workshop, worlds)]
            names = Names(project, workshop, list(_listed(project, served)))
            lines[at:at] = readers = names.reader_lines()
            at += len(readers)
            found = await task_findings(project, workshop, tasks, notice, Named(names, worlds))
            # Last, since it writes: what it leaves behind in a server that keeps state would be blamed on references.
            lines += await reset_lines(project, workshop, _shown(served))
    finally:
        workshop.places.close()
    lines += _override_lines(project, served)
    lines[at:at] = found.lines
    rows = tool_rows(list(served.values()), project.config.models)
    lines += provider_lines(rows, project.config.models, _most_shown(project, served), _hidden(project, served))
    lines += await model_lines(project, offline=offline, notice=notice)
    return Audit([*lines, *number_lines(project)], rows, found.rows, found.faults)


def _file_lines(project: Project) -> list[Line]:
    config, suite = project.config, project.suite
    held_out = sum(task.split == "held_out" for task in suite.tasks)
    facts = {"servers": len(config.servers), "variants": len(config.variants), "tasks": len(suite.tasks)}
    said = f"valid: servers {', '.join(config.servers)}; variants {', '.join(config.variants)}"
    tasks = f"{len(suite.tasks)} valid, {held_out} of them held out"
    return [Line("files", "ok", project.path.name, said, None, facts), Line("files", "ok", "tasks", tasks)]


async def _environment_lines(project: Project, workshop: Workshop) -> list[Line]:
    """Each world that tasks ask for can be made, and comes out alike each time."""
    lines, seen = [], set()
    for task in project.suite.tasks:
        if (fingerprint := workshop.environment_hashes()[task.id]) in seen:
            continue
        seen.add(fingerprint)
        try:
            await workshop.try_environment(task)
        except UsageError as exc:
            lines.append(Line("environment", "fail", f"task {task.id}", f"{exc.where}: {exc.what}", exc.hint))
    if not lines:
        said = f"can be made and reset ({len(seen)} kinds)" if len(seen) > 1 else "can be made and reset"
        lines = [Line("environment", "ok", "environment", said)]
    if project.config.environment is None and (denied := _denied(project)):
        what = "denied, which is the default without an environment: only tools with readOnlyHint: true are shown"
        lines.append(Line("environment", "warn", "writes", what, how_to_show(*denied[0])))
    return [*lines, *_sharing_lines(project, workshop)]


def _denied(project: Project) -> list[tuple[str, ServerConfig]]:
    """The servers whose tools are not shown to every task if they may write."""
    servers = project.config.servers.items()
    return [
        (name, each)
        for name, each in servers
        if any(project.writes(task, each) == "denied" for task in project.suite.tasks)
    ]


def _sharing_lines(project: Project, workshop: Workshop) -> list[Line]:
    found = [each] if (each := workshop.sharing_warning()) else []
    total = workshop.slots().total
    for variant in project.config.variants:
        found += suspects(project.config.servers_of(variant), total)
    fix = "keep in {trial_dir} what is written, or set concurrency: 1"
    return [Line("environment", "warn", "sharing", what, fix) for what in dict.fromkeys(found)]


def _servers(project: Project) -> list[_Asked]:
    """Each server once, and again for a variant that starts it in another way."""
    found: list[_Asked] = []
    for variant in project.config.variants:
        for name, config in project.config.servers_of(variant).items():
            if all((each.name, each.config) != (name, config) for each in found):
                label = f"{name} ({variant})" if any(each.name == name for each in found) else name
                found.append(_Asked(label, name, variant, config))
    return found


async def _serve(asked: _Asked, project: Project, workshop: Workshop) -> Served:
    environment = workshop.environment(project.suite.tasks[0])
    filters = [each[asked.name] for each in workshop.filters(asked.variant)]
    where = partial(project.where_server, asked.variant, asked.name)
    ground = Ground(asked.label, asked.config, filters, environment, workshop.places, project.config.limits, where)
    servers = await workshop.servers(asked.variant)
    served = await serve(servers[asked.name], ground)
    if asked.config.command is not None:
        _tell_sandbox(served, workshop.confinement(asked.config))
    return served


def _path_lines(asked: _Asked, project: Project, workshop: Workshop, worlds: Mapping[str, World]) -> Iterator[Line]:
    if world := worlds.get(workshop.environment_hashes()[project.suite.tasks[0].id]):
        yield from server_lines(asked.name, asked.config, world, project)


def _tell_sandbox(served: Served, confinement: Confinement | None) -> None:
    facts = {"sandbox": confinement.facts() if confinement else None}
    if confinement is None:
        served.say("ok", "sandbox: off; it may do whatever you may", None, **facts)
    elif not confinement.holds:
        fix = "choose 'sandbox: {mode: container}', or a Linux kernel with Landlock, for servers that you do not trust"
        served.say("warn", f"sandbox: {confinement.told()}", fix, **facts)
    else:
        served.say("ok", f"sandbox: {confinement.told()}", None, **facts)


def _override_lines(project: Project, served: Mapping[_Asked, Served]) -> list[Line]:
    """What a variant tells models instead is about tools that are there."""
    lines = []
    for variant in project.config.variants:
        file = project.config.told_by(variant, "overrides")
        own = project.config.servers_of(variant)
        listings = {name: found.tools for asked, found in served.items() for name in own if _is(asked, name, own)}
        if file is None or not all(listings.values()):
            continue
        try:
            check_overrides(project.overrides_of(variant), listings, file)
        except UsageError as exc:
            lines.append(Line("files", "fail", exc.where or file, exc.what, exc.hint))
        else:
            count = len(project.overrides_of(variant).tools)
            lines.append(Line("files", "ok", file, f"overrides {counted(count, 'tool')} of variant {variant}"))
    return lines


def _is(asked: _Asked, name: str, own: Mapping[str, ServerConfig]) -> bool:
    return asked.name == name and asked.config == own[name]


def _listed(project: Project, served: Mapping[_Asked, Served]) -> Iterator[Listed]:
    """The tools of each server of each variant."""
    for variant in project.config.variants:
        own = project.config.servers_of(variant)
        for name, config in own.items():
            found = next(each for asked, each in served.items() if _is(asked, name, own))
            yield Listed(variant, name, found.tools, found.whole and config.list_changed == "frozen")


def _shown(served: Mapping[_Asked, Served]) -> dict[str, list[RawTool]]:
    """By server, whichever its variant."""
    found: dict[str, list[RawTool]] = {}
    for asked, each in served.items():
        found.setdefault(asked.name, []).extend(each.shown)
    return found


def _hidden(project: Project, served: Mapping[_Asked, Served]) -> tuple[str, str] | None:
    """Why no model is shown a tool though there are some, and what would help."""
    for asked, found in served.items():
        if found.tools:
            return why_hidden(asked.name, found.tools[0], asked.config, found.filters[0])
    return None


def _most_shown(project: Project, served: Mapping[_Asked, Served]) -> int:
    """Tools of the variant that shows the most."""
    most = 0
    for variant in project.config.variants:
        own = project.config.servers_of(variant)
        here = [found for asked, found in served.items() if own.get(asked.name) == asked.config]
        most = max(most, sum(len(found.shown) for found in here))
    return most
