"""Task files to a Suite: defaults applied, prompts read, graders checked by the plugs that will run them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mcptrials import plugins
from mcptrials.environment import EnvironmentSpec, parse_reader
from mcptrials.errors import UsageError
from mcptrials.protocols import Grader, Limits
from mcptrials.source import Key, Source, explain, load_sources, read_text
from mcptrials.task import GraderSpec, Suite, Task

_SPEC_KEYS = ("type", "name", "gate", "weight")


def load_suite(patterns: Sequence[str], project_dir: Path) -> Suite:
    """The tasks of all files that the patterns match, in order of pattern and name.

    Raises:
        UsageError: with file, line and key.
    """
    tasks: dict[str, tuple[Task, str]] = {}
    for path in _files(patterns, project_dir):
        for source in load_sources(path):
            for key, value in _entries(source):
                task = _task(source, key, value, project_dir)
                where = source.where((*key, "id"))
                if task.id.casefold() in tasks:
                    first = tasks[task.id.casefold()][1]
                    raise UsageError(f"task id {task.id!r} is taken (see {first})", where=where, hint="rename one")
                tasks[task.id.casefold()] = (task, where)
    if not tasks:
        raise UsageError("the task files hold no task", where=", ".join(patterns), hint="add a task")
    return Suite(tasks=tuple(task for task, _ in tasks.values()))


def _files(patterns: Sequence[str], project_dir: Path) -> list[Path]:
    found: dict[Path, None] = {}
    for pattern in patterns:
        exact = project_dir / pattern
        if exact.is_file() or Path(pattern).is_absolute():
            paths = [path for path in [exact] if path.is_file()]
        else:
            paths = sorted(project_dir.glob(pattern))
        if not paths:
            raise UsageError(f"no task file matches {pattern!r}", where=str(project_dir), hint="check 'tasks'")
        found |= dict.fromkeys(path for path in paths if path.is_file())
    return list(found)


def _entries(source: Source) -> Iterator[tuple[tuple[Key, ...], Any]]:
    """Each task of a document with its path: a task, a list, or `{defaults, tasks}`."""
    value = source.value
    if isinstance(value, list):
        yield from (((index,), item) for index, item in enumerate(value))
    elif isinstance(value, dict) and "tasks" in value:
        for key in value.keys() - {"defaults", "tasks"}:
            raise UsageError(f"unknown key {key!r}", where=source.where((key,)), hint="known here: defaults, tasks")
        defaults = value.get("defaults") or {}
        if not isinstance(defaults, dict) or not isinstance(value["tasks"], list):
            raise UsageError("'defaults' is a mapping and 'tasks' a list", where=source.where())
        for index, item in enumerate(value["tasks"]):
            yield ("tasks", index), defaults | item if isinstance(item, dict) else item
    elif value is not None:
        yield (), value


def _task(source: Source, key: tuple[Key, ...], value: Any, project_dir: Path) -> Task:
    if not isinstance(value, dict):
        raise UsageError("a task is a mapping", where=source.where(key), hint="see the task file's keys in the docs")
    value = dict(value)
    if isinstance(value.get("prompt"), dict):
        value["prompt"] = _prompt(source, key, value["prompt"], project_dir)
    name = "grader" if "grader" in value and "graders" not in value else "graders"
    given = value.get(name)
    if isinstance(given, Mapping):
        given = [given]
    if isinstance(given, list):
        value[name] = [_spec(source, (*key, name, index), item) for index, item in enumerate(given)]
    try:
        task = Task.model_validate(value)
        Limits.model_validate(task.limits or {})
        EnvironmentSpec.model_validate(task.environment or {})
    except ValidationError as exc:
        raise explain(source, exc, key) from exc
    for index, spec in enumerate(task.graders):
        _check_settings(source, (*key, name, index), spec, project_dir)
    if task.expects == "abstain" and not any(spec.type == "no_tool_call" for spec in task.graders):
        task = task.model_copy(update={"graders": (*task.graders, GraderSpec(type="no_tool_call"))})
    return task


def _prompt(source: Source, key: tuple[Key, ...], value: dict[str, Any], project_dir: Path) -> str:
    if set(value) != {"file"} or not isinstance(value["file"], str):
        raise UsageError("a prompt is text or {file: path}", where=source.where((*key, "prompt")))
    return read_text(project_dir / value["file"])


def _spec(source: Source, key: tuple[Key, ...], item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
        raise UsageError("a grader is a mapping with a 'type'", where=source.where(key))
    spec = {name: item[name] for name in _SPEC_KEYS if name in item}
    return spec | {"settings": {name: value for name, value in item.items() if name not in _SPEC_KEYS}}


def _check_settings(source: Source, key: tuple[Key, ...], spec: GraderSpec, project_dir: Path) -> None:
    try:
        make_grader(spec, project_dir)
    except UsageError as exc:
        raise UsageError(exc.what, where=source.where((*key, "type")), hint=exc.hint) from exc
    except ValidationError as exc:
        raise explain(source, exc, key) from exc


def make_grader(spec: GraderSpec, project_dir: Path) -> Grader:
    """The grader that a spec describes."""
    grader: Grader = plugins.load("graders", spec.type, project_dir)(**spec.settings)
    return grader


def check_queries(task: Task, environment: EnvironmentSpec, project_dir: Path) -> None:
    """Every state that a task's graders ask for must have exactly one reader.

    Raises:
        UsageError: names the task and the query.
    """
    for spec in task.graders:
        for query in make_grader(spec, project_dir).needs(task):
            try:
                if query.read is None:
                    environment.find_reader(query.text)
                else:
                    parse_reader(query.read)
            except (LookupError, ValueError) as exc:
                what = str(exc).strip("\"'")
                hint = "declare it under environment.readers of the project file"
                raise UsageError(what, where=f"task {task.id!r}, grader {spec.label!r}", hint=hint) from exc
