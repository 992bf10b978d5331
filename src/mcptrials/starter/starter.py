"""Starter: the order of work of `init`, from entries to files that load."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import anyio

from mcptrials.environment import TrialPlaces
from mcptrials.errors import UsageError
from mcptrials.project import DEFAULT_FILE
from mcptrials.project.config import NAME
from mcptrials.runner.watchdog import watched
from mcptrials.source import load_source
from mcptrials.starter.drafts import Draft, drafts_of, drafts_text, slug_of
from mcptrials.starter.entry import Entry
from mcptrials.starter.hiding import without_secrets
from mcptrials.starter.insertion import with_servers
from mcptrials.starter.inspection import Inspection, inspect
from mcptrials.starter.loading import refuse_unloadable
from mcptrials.starter.placeholders import Placeholders, written_folder
from mcptrials.starter.project_text import project_text
from mcptrials.starter.server_text import server_lines, server_value
from mcptrials.starter.variables import Variables, named_variables
from mcptrials.starter.yaml_lines import scalar
from mcptrials.store.disk import write_whole

DRAFTS = "tasks/draft.yaml"


@dataclass(frozen=True)
class Started:
    """What was found and what was written."""

    project_file: Path
    added: Mapping[str, tuple[Entry, Inspection | None]]
    kept: tuple[str, ...]
    """Servers that the project has already."""
    created: tuple[Path, ...]
    extended: tuple[Path, ...]
    untouched: tuple[Path, ...]
    drafts: int
    variables: Variables
    notices: tuple[str, ...]


class Starter:
    """Makes or extends one project.

    Args:
        project_file: where it stands or will stand.
        entries: the servers that it should have.
        environ: where values of variables are looked up.
        offline: write without starting any server.

    Raises:
        UsageError: the project file is there, and cannot be extended.
    """

    def __init__(
        self, project_file: Path, entries: Sequence[Entry], environ: Mapping[str, str], *, offline: bool = False
    ) -> None:
        path = project_file / DEFAULT_FILE if project_file.is_dir() else project_file
        if path.suffix == ".json":
            raise UsageError("init writes YAML only", where=str(path), hint="give --project a name that ends in .yaml")
        if path.is_symlink() and not path.exists():
            raise UsageError("the file is a link that leads nowhere", where=str(path), hint="remove it")
        self.path = path.resolve()
        self._environ, self._offline = environ, offline
        self._notices: list[str] = []
        self._existing = self._read()
        named = named_variables(self.path.read_text("utf-8")) if self._existing else frozenset()
        self.variables = Variables(environ, reserved=named)
        entries = self._with_names(entries)
        known = self._existing["servers"] if self._existing else {}
        self._kept = tuple(entry.name for entry in entries if entry.name in known)
        self._entries = self._without_secrets([entry for entry in entries if entry.name not in known])

    def start(self, notice: Callable[[str], None]) -> Started:
        """Looks at every server that is new to the project, then writes.

        Raises:
            UsageError: nothing was written.
        """
        if self._entries:
            refuse_unloadable(
                self.path, self._project_text({entry.name: None for entry in self._entries}), self.variables
            )
        found = anyio.run(self._inspect_all, notice)
        files, drafts = self._texts(found) if self._entries else ({}, 0)
        if self.path in files:
            refuse_unloadable(self.path, files[self.path], self.variables)
        was_there = [path for path in files if path.exists()]
        new = sorted((path for path in files if path not in was_there), key=lambda path: path != self.path)
        self._write(files)
        return Started(
            project_file=self.path,
            added={entry.name: (entry, found[entry.name]) for entry in self._entries},
            kept=self._kept,
            created=tuple(new),
            extended=tuple(was_there),
            untouched=tuple(self._task_files(except_for=files)),
            drafts=drafts,
            variables=self.variables,
            notices=tuple(self._notices),
        )

    def _read(self) -> dict[str, Any] | None:
        """The project file as it is, unexpanded; None while there is none."""
        if not os.path.lexists(self.path):
            return None
        source = load_source(self.path)
        if not isinstance(source.value, dict) or not isinstance(source.value.get("servers"), dict):
            hint = "mend it, or choose another file with --project"
            raise UsageError("the file is there, and has no mapping 'servers'", where=source.where(), hint=hint)
        value: dict[str, Any] = source.value
        return value

    def _with_names(self, entries: Sequence[Entry]) -> list[Entry]:
        """Clients allow names that a project file does not."""
        names: list[str] = []
        for entry in entries:
            taken = [*names, *(each.name for each in entries if each is not entry and NAME.fullmatch(each.name))]
            used = {name.casefold() for name in names}
            fits = NAME.fullmatch(entry.name) is not None and entry.name.casefold() not in used
            names.append(entry.name if fits else slug_of(entry.name, taken))
            if not fits:
                self._notices.append(f"server {entry.name!r} is called {names[-1]!r} here")
        return [replace(entry, name=name) for entry, name in zip(entries, names, strict=True)]

    def _without_secrets(self, entries: Sequence[Entry]) -> list[Entry]:
        translated = [self._translated(entry) for entry in entries]
        return [without_secrets(entry, self.variables) for entry in translated]

    def _translated(self, entry: Entry) -> Entry:
        words = Placeholders(entry.base, self.path.parent, self._environ)
        done = replace(
            entry,
            command=None if entry.command is None else words.text(entry.command),
            args=tuple(map(words.text, entry.args)),
            env={name: words.text(value) for name, value in entry.env.items()},
            cwd=None if entry.cwd is None else words.text(entry.cwd),
            url=None if entry.url is None else words.text(entry.url),
            headers={name: words.text(value) for name, value in entry.headers.items()},
        )
        self.variables.refer(words.references, entry.name, done.env)
        if words.unknown:
            self._notices.append(f"server {entry.name!r}: {', '.join(words.unknown)} means nothing here; replace it")
        return done

    async def _inspect_all(self, notice: Callable[[str], None]) -> dict[str, Inspection | None]:
        places = TrialPlaces.create(self.path.parent)
        try:
            with watched(places.root):
                return {entry.name: await self._inspect(entry, notice, places) for entry in self._entries}
        finally:
            places.close()

    async def _inspect(self, entry: Entry, notice: Callable[[str], None], places: TrialPlaces) -> Inspection | None:
        if self._offline:
            return None
        notice(f"starting {entry.name}")
        workspace = written_folder(entry.base, self.path.parent)
        found = await inspect(entry, workspace, self.variables, places)
        self._notices += [f"server {entry.name!r}: {problem}" for problem in found.problems[:5]]
        if not found.tools:
            self._notices.append(f"server {entry.name!r} lists no tool")
        return found

    def _texts(self, found: Mapping[str, Inspection | None]) -> tuple[dict[Path, str], int]:
        """The files to write, drafts first: a project file without its drafts would never get them."""
        drafts = self._drafts(found)
        if not drafts:
            return {self.path: self._project_text(found)}, 0
        path = self._drafts_path(drafts[0])
        self._check_listed(path)
        return {path: drafts_text(drafts), self.path: self._project_text(found)}, len(drafts)

    def _project_text(self, found: Mapping[str, Inspection | None]) -> str:
        folder = self.path.parent
        lines = {entry.name: server_lines(entry, found[entry.name], folder) for entry in self._entries}
        if self._existing is None:
            return project_text(self._entries, list(lines.values()), folder)
        values = {entry.name: server_value(entry, folder) for entry in self._entries}
        return with_servers(self.path, self.path.read_bytes().decode(), lines, values)

    def _drafts(self, found: Mapping[str, Inspection | None]) -> list[Draft]:
        """Of each server; without those whose ids the task files have already."""
        servers = (self._existing or {}).get("servers", {}).keys() | found.keys()
        files = [path.read_text("utf-8", "replace").casefold() for path in self._task_files()]
        known = {line.strip(" -") for text in files for line in text.splitlines()}
        slugs: list[str] = []
        for name in (self._existing or {}).get("servers", {}):
            slugs.append(slug_of(str(name), slugs))
        drafts: list[Draft] = []
        for entry in self._entries:
            slugs.append(slug_of(entry.name, slugs))
            inspection = found[entry.name]
            drafts += drafts_of(entry.name, slugs[-1], inspection.tools if inspection else (), named=len(servers) > 1)
        new = [draft for draft in drafts if f"id: {scalar(draft.id)}".casefold() not in known]
        if there := [draft.id for draft in drafts if draft not in new]:
            self._notices.append(f"no draft is written of what the task files have already: {', '.join(there)}")
        return new

    def _drafts_path(self, first: Draft) -> Path:
        """A file that is not there yet."""
        folder = self.path.parent
        slug = first.id.rpartition("-")[0]
        names = [DRAFTS, f"tasks/draft-{slug}.yaml", *(f"tasks/draft-{slug}-{number}.yaml" for number in range(2, 100))]
        return next(folder / name for name in names if not os.path.lexists(folder / name))

    def _check_listed(self, path: Path) -> None:
        patterns = (self._existing or {"tasks": ["tasks/*.yaml"]}).get("tasks")
        name = path.relative_to(self.path.parent).as_posix()
        listed = [each for each in patterns if isinstance(each, str)] if isinstance(patterns, list) else []
        if not any(PurePath(name).match(pattern) for pattern in listed if pattern):
            self._notices.append(f"{name} is not among the 'tasks' of {self.path.name}: add it there")

    def _task_files(self, except_for: Mapping[Path, str] | None = None) -> list[Path]:
        found = sorted((self.path.parent / "tasks").glob("*.y*ml"))
        return [path for path in found if path.is_file() and path not in (except_for or {})]

    @staticmethod
    def _write(files: Mapping[Path, str]) -> None:
        for path, text in files.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, text.encode())
            except OSError as exc:
                what = f"cannot write the file: {exc.strerror or exc}"
                raise UsageError(what, where=str(path), hint="choose another folder with --into") from exc
