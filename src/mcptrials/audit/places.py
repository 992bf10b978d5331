"""Places: files, tables and columns that tasks and a project name, looked for in the world that a trial begins with."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from anyio import to_thread

from mcptrials.audit.line import Level, Line
from mcptrials.environment import Environment, FileReader, SqlReader, TrialPlaces, parse_reader, take_snapshot
from mcptrials.environment.look import Look, path_part
from mcptrials.environment.remains import TIMEOUT_S, ReadError, query
from mcptrials.errors import HarnessError
from mcptrials.graders.changes import CHANGES
from mcptrials.project import Project, ServerConfig, make_grader
from mcptrials.protocols import Place, StateQuery
from mcptrials.runner.building import Workshop
from mcptrials.runner.preflight import no_wire
from mcptrials.runner.rehearsal import Played
from mcptrials.source import Keys, alike
from mcptrials.task import GraderSpec, Task
from mcptrials.trial import StateValue

_NOT_THERE = re.compile(r"no such (table|column): (?:\w+\.)?(.+)|(database) '(.+)' does not exist")
"""What SQLite says of a name, and what is said of a database."""
_SURE = 0.75
"""How alike a name must be to be taken for the one that is meant."""
_OWN_PATH = re.compile(r"\{trial_dir\}/([^\s\"',;:?{}]+)")
_REPLACED = ("trial_dir", "project_dir", "python")
_WILD = re.compile(r"[*?\[]")
_UNLESS = ", unless the server makes it"

Found = tuple[Keys, Level, str, str | None]
"""A key, what is wrong with what it names, and what is meant."""


@dataclass(frozen=True, slots=True)
class World:
    """What is there when a trial begins."""

    place: Place
    files: frozenset[str]
    tables: Mapping[str, tuple[str, ...]]
    """Columns by `shop.db/orders`."""
    state: dict[tuple[str, str], StateValue] = field(default_factory=dict)
    """What the readers of tasks find, by task and query."""


async def worlds_of(project: Project, workshop: Workshop) -> dict[str, World]:
    """Each world that can be made and looked at, by its environment's hash."""
    hashes, alike_tasks = workshop.environment_hashes(), dict[str, list[Task]]()
    for task in project.suite.tasks:
        alike_tasks.setdefault(hashes[task.id], []).append(task)
    worlds = {}
    for fingerprint, tasks in alike_tasks.items():
        with suppress(HarnessError, ReadError, OSError, ValueError, sqlite3.Error):  # told where it is made
            environment = workshop.environment(tasks[0])
            worlds[fingerprint] = await _look_around(environment, tasks, project, workshop.places)
    return worlds


async def _look_around(environment: Environment, tasks: Sequence[Task], project: Project, places: TrialPlaces) -> World:
    """The world of tasks that have one environment; what its readers find there is read."""
    place = places.make(no_wire)
    try:
        await environment.prepare(place)
        world = await to_thread.run_sync(_survey, place)
        for task in tasks:
            for _, asked in _queries(task, project):
                if _looks_at_files(environment, asked):
                    world.state[task.id, asked.key] = await environment.read(asked, place)
    finally:
        places.remove(place)
    return world


def _survey(place: Place) -> World:
    seen = take_snapshot(place.trial_dir)
    tables = {}
    for where in seen.tables:
        database, _, table = where.rpartition("/")
        quoted = table.replace('"', '""')
        sql = f'select * from "{quoted}" limit 0'  # noqa: S608 - quoted
        tables[where] = tuple(query(place.trial_dir / database, place.trial_dir, sql, {}, TIMEOUT_S)[1])
    files = {where for where in seen.files if not where.endswith("/")}
    return World(place, frozenset(files | {where.rpartition("/")[0] for where in tables}), tables)


def _queries(task: Task, project: Project) -> Iterator[tuple[int, StateQuery]]:
    """What each grader wants to know of the trial, with the grader's number."""
    for index, spec in enumerate(task.graders):
        for asked in make_grader(spec, project.dir).needs(task):
            if asked.of == "trial":
                yield index, asked


def _looks_at_files(environment: Environment, asked: StateQuery) -> bool:
    reader = environment.reader_of(asked)
    return isinstance(reader, FileReader) or (isinstance(reader, SqlReader) and reader.is_sqlite)


def hash_lines(project: Project, workshop: Workshop, worlds: Mapping[str, World]) -> list[Line]:
    """Parts of the state hash that are not there."""
    firsts = {workshop.environment_hashes()[task.id]: task for task in reversed(project.suite.tasks)}
    lines = [
        line
        for fingerprint, world in worlds.items()
        for line in _hash_lines(workshop.environment(firsts[fingerprint]), world, firsts[fingerprint], project)
    ]
    return list({(line.what, line.level): line for line in lines}.values())


def _hash_lines(environment: Environment, world: World, task: Task, project: Project) -> Iterator[Line]:
    """Of what is not there the hash is the same whatever happens."""
    for index, part in enumerate(environment.spec.state_hash):
        reader = parse_reader(part)
        if not isinstance(reader, FileReader) or (name := _own(world.place.expand(reader.file), world)) is None:
            continue
        if name not in world.files and not any(file.startswith(f"{name}/") for file in world.files):
            meant = alike(name, world.files, _SURE)
            what = f"{project.where_in(task, 'environment', 'state_hash', index)}: {name!r} is not there before a trial"
            fix = f"did you mean {meant!r}?" if meant else "name a file of 'files' or one that 'reset' makes"
            yield Line("environment", "fail" if meant else "warn", "state_hash", what, fix)


def server_lines(name: str, config: ServerConfig, world: World, project: Project) -> Iterator[Line]:
    """What a server is told of and is not there: names that nothing replaces, files that no fixture makes."""
    for index, arg in enumerate(config.args):
        for word in re.findall(r"\{(\w+)\}", arg):
            if word not in _REPLACED and (meant := alike(word, _REPLACED, _SURE)):
                what = f"{project.where('servers', name, 'args', index)}: {{{word}}} stays as it is"
                yield Line("servers", "warn", name, what, f"did you mean {{{meant}}}?")
    yield from _file_lines(name, config, world, project)


def _file_lines(name: str, config: ServerConfig, world: World, project: Project) -> Iterator[Line]:
    """Files that a server is told of under another name than the fixture has."""
    told: list[tuple[Keys, str]] = [(("args", index), arg) for index, arg in enumerate(config.args)]
    told += [(("env", variable), value) for variable, value in config.env.items()]
    named = [(key, path.rstrip("/")) for key, value in told for path in _OWN_PATH.findall(value)]
    free = world.files - {path for _, path in named}
    for key, path in named:
        if path not in world.files and (meant := alike(path, free, _SURE)):
            what = f"{project.where('servers', name, *key)}: there is no {path!r} when a trial begins{_UNLESS}"
            yield Line("servers", "warn", name, what, f"did you mean {meant!r}?")


def task_lines(
    task: Task, environment: Environment, world: World, played: Played | None, project: Project
) -> list[Line]:
    """What the graders of a task look for that is not there.

    Args:
        played: the task's reference, passed or not: what it leaves behind is there too.
    """
    found = [*_unread(task, environment, world, played, project), *_changes(task, world, played)]
    return [
        Line(
            "tasks",
            level,
            task.id,
            f"{project.where_in(task, *key)}: {what}",
            meant and f"did you mean {meant!r}?",
            {"reference": False},
        )
        for key, level, what, meant in found
    ]


def _unread(
    task: Task, environment: Environment, world: World, played: Played | None, project: Project
) -> Iterator[Found]:
    """What readers do not find, neither before a trial nor after the reference."""
    after = played.ended.outcome.state if played and played.ended.outcome else {}
    level: Level = "fail" if after else "warn"
    unless = "" if after else _UNLESS
    for index, asked in _queries(task, project):
        before = world.state.get((task.id, asked.key))
        then = after.get(asked.key, before)
        if before is None or then is None:
            continue
        key: Keys = ("graders", index, "read" if asked.read else "query")
        said = _NOT_THERE.search(before.error or "")
        if said and then.error:
            kind, name = (said[1], said[2]) if said[1] else (said[3], said[4])
            yield key, level, f"there is no {kind} {name!r}{unless}", _meant(kind, name, world)
        elif before.value in (None, False) and then.value in (None, False) and not before.error and not then.error:
            yield from _missing_file(environment, asked, world, (key, level, unless))


def _missing_file(
    environment: Environment, asked: StateQuery, world: World, at: tuple[Keys, Level, str]
) -> Iterator[Found]:
    """A file that a task may make itself is no fault, unless its name is nearly that of one that is there."""
    reader, bound = (parse_reader(asked.read), {}) if asked.read else environment.spec.find_reader(asked.text)
    if isinstance(reader, FileReader):
        name = _own(Look(world.place, bound, str).fill(reader.file, path_part), world)
        meant = name and name not in world.files and alike(name, world.files, _SURE)
        if meant:
            yield at[0], at[1], f"there is no file {name!r}{at[2]}", meant


def _meant(kind: str, name: str, world: World) -> str | None:
    tables = {where.rpartition("/")[2] for where in world.tables}
    columns = {column for each in world.tables.values() for column in each}
    files = {where.rpartition("/")[2] for where in world.files}
    return alike(name, {"table": tables, "column": columns, "database": files}[kind])


def _own(path: str, world: World) -> str | None:
    """A path as seen from the trial's directory, if it lies there."""
    full = world.place.trial_dir / path
    return full.relative_to(world.place.trial_dir).as_posix() if full.is_relative_to(world.place.trial_dir) else None


def _changes(task: Task, world: World, played: Played | None) -> Iterator[Found]:
    """Places and columns that graders of changes name."""
    outcome = played.ended.outcome if played else None
    seen = outcome.state.get(CHANGES.key) if outcome else None
    changed = seen.value if seen and isinstance(seen.value, list) else []
    tables = dict(world.tables) | {each["in"]: tuple(each["row"]) for each in changed if "row" in each}
    known = {*world.files, *tables, *(each["in"] for each in changed)}
    level: Level = "fail" if changed else "warn"
    for index, spec in enumerate(task.graders):
        for key, pattern, where in _allowed(spec):
            at = ("graders", index, *key)
            hits = [place for place in known if fnmatchcase(place, pattern)]
            if not hits:
                yield from _nowhere(at, pattern, known, tables, level)
            columns = {column for place in hits for column in tables.get(place, ())}
            for name in where if columns else ():
                if name not in columns:
                    yield (
                        (*at, "where", name),
                        level,
                        f"there is no column {name!r} in {pattern!r}",
                        alike(name, columns),
                    )
        for number, pattern in enumerate(_ignored(spec)):
            places = known | {f"{table}.{column}" for table, columns in tables.items() for column in columns}
            if not any(fnmatchcase(place, pattern) for place in places):
                yield from _nowhere(("graders", index, "ignore", number), pattern, places, tables, "warn")


def _allowed(spec: GraderSpec) -> Iterator[tuple[Keys, str, Iterable[str]]]:
    for index, item in enumerate(spec.settings.get("allow", ()) if spec.type == "only_changes" else ()):
        place: Any = {"in": item} if isinstance(item, str) else item
        yield ("allow", index), place["in"], place.get("where") or ()


def _ignored(spec: GraderSpec) -> Sequence[str]:
    """With `queries` they are keys of what readers find."""
    own = spec.type == "state_equals_reference" and not spec.settings.get("queries")
    return spec.settings.get("ignore", ()) if own else ()


def _nowhere(at: Keys, pattern: str, known: Iterable[str], tables: Iterable[str], level: Level) -> Iterator[Found]:
    """A pattern that names nothing: wrong inside of a database that is there; of files, if one is nearly called so."""
    meant = alike(pattern, known, _SURE)
    if any(pattern.startswith(f"{table.rpartition('/')[0]}/") for table in tables):
        yield at, level, f"nothing in the database is called {pattern!r}", meant
    elif meant and not _WILD.search(pattern):
        yield at, "warn", f"nothing is called {pattern!r}{_UNLESS}", meant
