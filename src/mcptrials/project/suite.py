"""Task files to a Suite: defaults applied, prompts read, graders checked by the plugs that will run them."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mcptrials import plugins
from mcptrials.environment import EnvironmentSpec, parse_reader
from mcptrials.environment.spec import unbound_names
from mcptrials.errors import UsageError, describe
from mcptrials.project.config import ProjectConfig
from mcptrials.project.readers import check_reader
from mcptrials.protocols import Grader, Limits, StateQuery
from mcptrials.source import Key, Keys, Source, alike, explain, load_sources, read_text
from mcptrials.task import GraderSpec, Suite, Task

_SPEC_KEYS = ("type", "name", "gate", "weight")
_GRADERS = ("graders", "grader")


@dataclass(frozen=True)
class _Entry:
    """One task as a file gives it, and where its parts stand."""

    source: Source
    key: Keys
    value: Any
    inherited: Mapping[str, Any]
    """What it takes from the file's defaults."""

    def place(self, inner: Keys) -> Keys:
        """Where a part of the task stands: with the task, or with the defaults."""
        return ("defaults", *inner) if inner and inner[0] in self.inherited else (*self.key, *inner)

    def where(self, inner: Keys) -> str:
        """The same as `file:line: key`, with the graders under the name that the file has for them."""
        if inner[:1] == ("graders",) and "grader" in self.value:
            inner = ("grader", *inner[1 if isinstance(self.value["grader"], list) else 2 :])
        return self.source.where(self.place(inner))

    def error(self, what: str, *inner: Key, hint: str | None = None) -> UsageError:
        return UsageError(what, where=self.source.where(self.place(inner)), hint=hint)


Whereabouts = Mapping[str, Callable[[Keys], str]]
"""By task id: from a place inside the task to `file:line: key`."""


def load_suite(config: ProjectConfig, source: Source) -> tuple[Suite, Whereabouts]:
    """The tasks of all files that the project names, in order of pattern and name, with where they stand.

    Raises:
        UsageError: with file, line and key.
    """
    tasks: dict[str, tuple[Task, str]] = {}
    places: dict[str, Callable[[Keys], str]] = {}
    for path in _files(config.tasks, source):
        for entry in _entries(path):
            task = _task(entry, config, source.path.parent)
            where = entry.source.where(entry.place(("id",)))
            if task.id.casefold() in tasks:
                first = tasks[task.id.casefold()][1]
                raise UsageError(f"task id {task.id!r} is taken (see {first})", where=where, hint="rename one")
            tasks[task.id.casefold()] = (task, where)
            places[task.id] = entry.where
    if not tasks:
        raise UsageError("the task files hold no task", where=source.where(("tasks",)), hint="add a task")
    return Suite(tasks=tuple(task for task, _ in tasks.values())), places


def _files(patterns: Sequence[str], source: Source) -> list[Path]:
    found: dict[Path, None] = {}
    for index, pattern in enumerate(patterns):
        try:
            paths = matching(source.path.parent, pattern)
        except (OSError, ValueError, LookupError, NotImplementedError) as exc:
            said = str(exc) if isinstance(exc, ValueError) else "it is no pattern of files"
            reason = getattr(exc, "strerror", None) or said
            raise UsageError(f"{pattern[:80]!r}: {reason}", where=source.where(("tasks", index))) from exc
        if not paths:
            what = f"no task file matches {pattern!r}"
            raise UsageError(what, where=source.where(("tasks", index)), hint="paths are relative to the project file")
        found |= dict.fromkeys(paths)
    return list(found)


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files that one pattern of `tasks` names."""
    exact = folder / pattern
    paths = [exact] if exact.is_file() or Path(pattern).is_absolute() else sorted(folder.glob(pattern))
    return [path for path in paths if path.is_file()]


def _entries(path: Path) -> Iterator[_Entry]:
    """Each task of a file: of a task, a list, or `{defaults, tasks}`."""
    for source in load_sources(path):
        value = source.value
        if isinstance(value, list):
            yield from (_Entry(source, (index,), item, {}) for index, item in enumerate(value))
        elif isinstance(value, dict) and "tasks" in value:
            yield from _entries_with_defaults(source, value)
        elif value is not None:
            yield _Entry(source, (), value, {})


def _entries_with_defaults(source: Source, value: Mapping[str, Any]) -> Iterator[_Entry]:
    for key in value:
        if key not in ("defaults", "tasks"):
            raise UsageError(f"unknown key {key!r}", where=source.where((key,)), hint="known here: defaults, tasks")
    defaults = value.get("defaults") or {}
    if not isinstance(defaults, dict):
        raise UsageError("'defaults' should be a mapping", where=source.where(("defaults",)))
    if not isinstance(value["tasks"], list):
        raise UsageError("'tasks' should be a list", where=source.where(("tasks",)))
    for index, item in enumerate(value["tasks"]):
        own = item if isinstance(item, dict) else {}
        replaced = {*own, *(_GRADERS if set(_GRADERS) & own.keys() else ())}
        inherited = {key: default for key, default in defaults.items() if key not in replaced}
        yield _Entry(source, ("tasks", index), inherited | item if isinstance(item, dict) else item, inherited)


def _task(entry: _Entry, config: ProjectConfig, project_dir: Path) -> Task:
    if not isinstance(entry.value, dict):
        raise entry.error("a task is a mapping", hint="write at least id, prompt and graders")
    value = dict(entry.value)
    if isinstance(value.get("prompt"), dict):
        value["prompt"] = _prompt(entry, value["prompt"], project_dir)
    specs = list(_specs(entry))
    if specs:
        value.pop("grader", None)
        value["graders"] = [spec for _, spec in specs]
    try:
        task = Task.model_validate(value)
    except ValidationError as exc:
        raise explain(entry.source, exc, entry.place) from exc
    _check_part(entry, "limits", Limits, task.limits)
    _check_part(entry, "environment", EnvironmentSpec, task.environment)
    graders = [(inner, spec, _checked_grader(entry, inner, spec, project_dir)) for inner, spec in specs]
    environment = config.environment_of(task)
    check = partial(check_reader, config=config, project_dir=project_dir)
    for inner, _, grader in graders:
        _check_queries(entry, inner, _needs(entry, inner, grader, task), environment, check)
    if task.expects == "abstain":
        return _abstaining(task, entry)
    if not any(grader.default_gate if spec.gate is None else spec.gate for _, spec, grader in graders):
        raise entry.error("no grader decides: every trial would pass", specs[0][0][0], hint="add gate: true to one")
    return task


def _abstaining(task: Task, entry: _Entry) -> Task:
    """With a `no_tool_call` that decides, whatever else is asked for."""
    if task.combine == "any" and len(task.graders) > 1:
        what = "'combine: any' would let a trial pass that called a tool, though 'expects: abstain' says none is right"
        raise entry.error(what, "combine", hint="remove one of them")
    rules = [spec.type == "no_tool_call" for spec in task.graders]
    if not any(rules):
        return task.model_copy(update={"graders": (*task.graders, GraderSpec(type="no_tool_call"))})
    deciding = [
        spec.model_copy(update={"gate": None}) if rule else spec for spec, rule in zip(task.graders, rules, strict=True)
    ]
    return task.model_copy(update={"graders": tuple(deciding)})


def _prompt(entry: _Entry, value: dict[str, Any], project_dir: Path) -> str:
    if set(value) != {"file"} or not isinstance(value["file"], str):
        raise entry.error("a prompt is text or {file: path}", "prompt")
    try:
        return read_text(project_dir / value["file"])
    except UsageError as exc:
        raise entry.error(f"prompt {value['file']!r}: {exc.what}", "prompt", "file", hint=exc.hint) from exc


def _specs(entry: _Entry) -> Iterator[tuple[Keys, GraderSpec]]:
    """Each grader with its place inside the task; none if they are missing or of a wrong kind."""
    given = [name for name in _GRADERS if name in entry.value]
    if len(given) > 1:
        raise entry.error("both 'grader' and 'graders' are given", "grader", hint="keep one")
    value = entry.value[given[0]] if given else None
    if isinstance(value, dict):
        yield (given[0],), _spec(entry, (given[0],), value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield (given[0], index), _spec(entry, (given[0], index), item)


def _spec(entry: _Entry, inner: Keys, item: Any) -> GraderSpec:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise entry.error("a grader is a mapping with a 'type'", *inner)
    spec = {name: item[name] for name in _SPEC_KEYS if name in item}
    settings = {name: value for name, value in item.items() if name not in _SPEC_KEYS}
    try:
        return GraderSpec.model_validate(spec | {"settings": settings})
    except ValidationError as exc:
        raise explain(entry.source, exc, lambda key: entry.place((*inner, *key))) from exc


def _check_part(entry: _Entry, name: str, kind: type[BaseModel], value: Any) -> None:
    try:
        kind.model_validate(value or {})
    except ValidationError as exc:
        raise explain(entry.source, exc, lambda key: entry.place((name, *key))) from exc


def _checked_grader(entry: _Entry, inner: Keys, spec: GraderSpec, project_dir: Path) -> Grader:
    try:
        return make_grader(spec, project_dir)
    except UsageError as exc:
        raise entry.error(exc.what, *inner, "type", hint=exc.hint) from exc
    except ValidationError as exc:
        raise explain(entry.source, exc, lambda key: entry.place((*inner, *key)), _SPEC_KEYS) from exc
    except (TypeError, ValueError) as exc:
        raise entry.error(f"grader {spec.type!r} does not take these settings: {describe(exc)}", *inner) from exc


def _needs(entry: _Entry, inner: Keys, grader: Grader, task: Task) -> Sequence[StateQuery]:
    try:
        return grader.needs(task)
    except ValueError as exc:
        raise entry.error(str(exc), *inner, hint="add it, or take another grader") from exc


def make_grader(spec: GraderSpec, project_dir: Path) -> Grader:
    """The grader that a spec describes."""
    grader: Grader = plugins.load("graders", spec.type, project_dir)(**spec.settings)
    if spec.type == "python":
        _refuse_missing(spec.settings["call"], project_dir)
    return grader


def _refuse_missing(call: str, project_dir: Path) -> None:
    """Raises:
    UsageError: there is no such function, which every judgement would be missing.
    """
    with redirect_stdout(sys.stderr):  # what its module prints when it is imported
        function = plugins.load("graders", call, project_dir)
    if not callable(function):
        raise UsageError(f"{call!r} is no function", hint="name one that takes a GradeInput")


def _check_queries(
    entry: _Entry,
    inner: Keys,
    queries: Sequence[StateQuery],
    environment: EnvironmentSpec,
    check: Callable[..., None],
) -> None:
    """Every state that a grader asks for must have exactly one reader, and that what it needs."""
    for query in queries:
        try:
            if query.read is None:
                reader, given = environment.find_reader(query.text)
            else:
                given = {}
                reader = parse_reader(query.read)
                if unbound := unbound_names(reader):
                    raise entry.error(f"the reader uses {unbound}, which nothing gives a value", *inner, "read")
            check(reader, given=given)
        except UsageError as exc:
            raise exc if exc.where else entry.error(exc.what, *inner, hint=exc.hint) from exc
        except LookupError as exc:
            raise entry.error(str(exc), *inner, "query", hint=_reader_hint(query.text, environment)) from exc
        except ValidationError as exc:
            raise explain(entry.source, exc, lambda key: entry.place((*inner, "read", *key))) from exc
        except ValueError as exc:
            raise entry.error(str(exc), *inner, "read") from exc


def _reader_hint(query: str, environment: EnvironmentSpec) -> str:
    """What helps a query that has not exactly one reader."""
    if environment.matching(query):
        return "change the patterns so that one matches"
    meant = alike(query, environment.readers)
    declare = "declare it under environment.readers of the project file"
    return f"did you mean {meant!r}? else {declare}" if meant else declare
