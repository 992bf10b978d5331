"""The order of an audit, from files to numbers; nothing stops at the first fault."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import anyio

from mcptrials.audit.answering import answer_lines
from mcptrials.audit.idling import idling_lines
from mcptrials.audit.line import Audit, Line
from mcptrials.audit.modelling import model_lines
from mcptrials.audit.numbers import number_lines
from mcptrials.audit.providers import provider_lines, tool_rows
from mcptrials.audit.serving import Ground, Served, serve
from mcptrials.errors import UsageError
from mcptrials.project import Project, ServerConfig
from mcptrials.redaction import Redactor
from mcptrials.runner.building import Workshop
from mcptrials.runner.options import Silent
from mcptrials.runner.preflight import pristine_hash
from mcptrials.runner.selection import select_models
from mcptrials.runner.watchdog import watched


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A server as one variant or several have it."""

    label: str
    name: str
    variant: str
    config: ServerConfig


def check_project(project: Project, models: Sequence[str], *, offline: bool, notice: Callable[[str], None]) -> Audit:
    """The whole audit of a project that could be loaded.

    Args:
        models: specs besides the project's own.
        offline: make no request to any model.
        notice: hears what takes its time.

    Raises:
        UsageError: a model's spec that names no adapter.
    """
    named = [each.model for each in project.config.models]
    config = select_models(project.config, (*named, *models)) if models else project.config
    return anyio.run(_check, replace(project, config=config), offline, notice)


async def _check(project: Project, offline: bool, notice: Callable[[str], None]) -> Audit:
    workshop = Workshop(project, project.suite, Silent(), Redactor(project.secrets))
    try:
        with watched(workshop.places.root):
            lines = [*_file_lines(project), *answer_lines(project), *await _environment_lines(project, workshop)]
            lines += await idling_lines(project, workshop)
            served = {}
            for asked in _servers(project):
                notice(f"starting {asked.label}")
                served[asked] = await _serve(asked, project, workshop)
                lines += served[asked].lines
    finally:
        workshop.places.close()
    rows = tool_rows(list(served.values()), project.config.models)
    lines += provider_lines(rows, project.config.models, _most_shown(project, served))
    lines += await model_lines(project, offline=offline, notice=notice)
    return Audit([*lines, *number_lines(project)], rows)


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
        environment = workshop.environment(task)
        if (fingerprint := environment.fingerprint()) in seen:
            continue
        seen.add(fingerprint)
        try:
            await pristine_hash(environment, workshop.places)
        except UsageError as exc:
            lines.append(Line("environment", "fail", f"task {task.id}", exc.what, exc.hint))
    if not lines:
        said = f"can be made and reset ({len(seen)} kinds)" if len(seen) > 1 else "can be made and reset"
        lines = [Line("environment", "ok", "environment", said)]
    if project.config.environment is None:
        fix = "declare an environment to show all tools; state and reset come with it"
        lines.append(Line("environment", "warn", "writes", "denied: no environment is declared", fix))
    return lines


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
    ground = Ground(asked.label, asked.config, filters, environment, workshop.places, project.config.limits)
    servers = await workshop.servers(asked.variant)
    return await serve(servers[asked.name], ground)


def _most_shown(project: Project, served: Mapping[_Asked, Served]) -> int:
    """Tools of the variant that shows the most."""
    most = 0
    for variant in project.config.variants:
        own = project.config.servers_of(variant)
        here = [found for asked, found in served.items() if own.get(asked.name) == asked.config]
        most = max(most, sum(len(found.shown) for found in here))
    return most
