"""Environment: makes a clean world for each trial, proves that it is clean, and reads what the trial left."""

import hashlib
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import anyio
from anyio import to_thread

from mcptrials.encoding import canonical_hash
from mcptrials.environment.command import last_line, run_command
from mcptrials.environment.look import LiveServers, Look
from mcptrials.environment.reader import Reader, attempt, parse_reader
from mcptrials.environment.readers.command import CommandReader
from mcptrials.environment.readers.file import FileReader
from mcptrials.environment.readers.sql import SqlReader
from mcptrials.environment.remains import ReadError, inode, refuse_other_dir
from mcptrials.environment.snapshot import Snapshot
from mcptrials.environment.spec import EnvironmentSpec
from mcptrials.errors import HarnessError, UsageError
from mcptrials.protocols import Place, StateQuery, WireLog
from mcptrials.removal import remove_tree
from mcptrials.trial import StateValue

CHECK_TIMEOUT_S = 300.0
_UNLISTED = 0o300
"""A server that looks around finds its own trial's directory, and not those of others beside it."""


@dataclass(frozen=True)
class TrialPlaces:
    """Where trial directories are made: outside any repository, with names that tell nothing."""

    root: Path
    project_dir: Path
    kept: Path | None = None
    """Where directories of trials are kept when these are over; None: they are removed."""

    @classmethod
    def create(cls, project_dir: Path, *, keep: bool = False) -> "TrialPlaces":
        """Raises:
        UsageError: there is no room for temporary files.
        """
        try:
            kept = Path(tempfile.mkdtemp(prefix="mcptrials-kept-")).resolve() if keep else None
            root = Path(tempfile.mkdtemp(prefix="mcptrials-")).resolve()
            root.chmod(_UNLISTED)
            return cls(root, project_dir, kept)
        except OSError as exc:
            what = f"cannot make a temporary directory: {exc.strerror or exc}"
            raise UsageError(what, hint="make room, or set TMPDIR to another place") from exc

    def make(self, wire: Callable[[str], WireLog]) -> Place:
        """Raises:
        HarnessError: io, when there is no room for it.
        """
        try:
            self.root.mkdir(_UNLISTED, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="t", dir=self.root))
            return Place(folder, self.project_dir, wire, inode(folder))
        except OSError as exc:
            what = f"cannot make a directory for the trial in {self.root}: {exc.strerror or exc}"
            raise HarnessError("io", f"{what}; make room, or set TMPDIR to another place") from exc

    def remove(self, place: Place) -> None:
        """Nothing else that stands in its place is touched."""
        if place.inode in (None, inode(place.trial_dir)):
            remove_tree(place.trial_dir)

    def leave(self, place: Place, name: str) -> Path | None:
        """The end of a trial: its directory is removed, or kept under a name that a person finds, which is given."""
        if self.kept is None:
            self.remove(place)
        elif place.inode in (None, inode(place.trial_dir)):
            with suppress(OSError):
                return place.trial_dir.rename(self.kept / name)
        return None

    def close(self) -> None:
        """What is kept stays; of nothing, nothing stays."""
        with suppress(OSError):
            self.root.chmod(stat.S_IRWXU)
        remove_tree(self.root)
        if self.kept:
            with suppress(OSError):
                self.kept.rmdir()


class Environment:
    """The environment of one task: the project's, with what the task adds."""

    def __init__(self, spec: EnvironmentSpec, project_dir: Path, load: Callable[[str], Any] | None = None) -> None:
        """Args:
        load: gives the plug of a name: the user's function, or what a reader needs beside this package.
        """
        self.spec, self.project_dir, self._load = spec, project_dir, load or _no_plug
        self.pristine: Snapshot | None = None
        """What every trial starts from, if a reader of changes has to know."""

    def fingerprint(self) -> str:
        """Hash of fixtures (by content), reset steps and readers.

        Raises:
            UsageError: a fixture cannot be read.
        """
        fixtures = {target: self._fixture_hash(source) for source, target in self.spec.files.items()}
        return canonical_hash([fixtures, self.spec.reset, self.spec.state_hash, self.spec.readers])

    def _fixture_hash(self, source: str) -> str:
        path = self.project_dir / source
        try:
            if not path.exists():
                raise UsageError(f"fixture {source!r} does not exist", where="environment.files", hint="check the path")
            return hash_path(path.resolve())
        except OSError as exc:
            what = f"fixture {source!r} cannot be read: {exc.strerror or exc}"
            raise UsageError(what, where="environment.files", hint="check its permissions") from exc

    async def prepare(self, place: Place) -> None:
        """Copies the fixtures and runs the reset steps.

        Raises:
            HarnessError: reset.
        """
        try:
            if self.spec.files:
                await to_thread.run_sync(self._copy_files, place)
        except (OSError, ValueError) as exc:
            raise HarnessError("reset", f"cannot copy the fixtures: {exc}") from exc
        for step in self.spec.reset:
            await self._reset_step(parse_reader(step), place)

    def _copy_files(self, place: Place) -> None:
        for source, target in self.spec.files.items():
            origin, copy = self.project_dir / source, Path(place.expand(target))
            copy.parent.mkdir(parents=True, exist_ok=True)
            if origin.is_dir():
                shutil.copytree(origin, copy, dirs_exist_ok=True, symlinks=True)
            else:
                shutil.copyfile(origin, copy)

    async def _reset_step(self, step: Reader, place: Place) -> None:
        try:
            if isinstance(step, CommandReader):
                argv = [place.expand(item) for item in step.command]
                code, _, errors = await run_command(argv, place, step.timeout_seconds)
                if code != 0:
                    raise HarnessError("reset", f"reset step {argv[0]!r} exited with code {code}: {last_line(errors)}")
            elif isinstance(step, SqlReader):
                await step.execute(self._look(place))
        except (ReadError, UsageError, sqlite3.Error) as exc:
            raise HarnessError("reset", f"reset step failed: {exc}") from exc

    async def state_hash(self, place: Place) -> str | None:
        """Hash of the declared state; None when nothing is declared.

        Raises:
            HarnessError: reset, when a part cannot be read.
        """
        parts: Sequence[Mapping[str, Any]] = self.spec.state_hash or [
            {"file": target} for target in self.spec.files.values()
        ]
        if not parts:
            return None
        try:
            refuse_other_dir(place.trial_dir, place.inode)
            return canonical_hash([await self._hash_part(parse_reader(part), place) for part in parts])
        except (ReadError, OSError) as exc:
            raise HarnessError("reset", f"the state before the trial cannot be hashed: {exc}") from exc

    async def _hash_part(self, part: Reader, place: Place) -> Any:
        if isinstance(part, FileReader) and part.as_ == "text":
            return await to_thread.run_sync(hash_path, place.trial_dir / place.expand(part.file))
        return await attempt(part, self._look(place))

    def is_read_before_close(self, query: StateQuery) -> bool:
        """Whether the answer to a question is looked for while the servers still run."""
        try:
            return self.reader_of(query).before_close
        except LookupError:
            return False

    def reader_of(self, query: StateQuery) -> Reader:
        """What answers a question.

        Raises:
            LookupError: no reader does, or several do.
        """
        return self._find(query)[0]

    async def read(self, query: StateQuery, place: Place, servers: LiveServers | None = None) -> StateValue:
        """The answer to a grader's question. A reader that fails is a value with an error, never an exception."""
        try:
            reader, bound = self._find(query)
            return StateValue(value=await attempt(reader, self._look(place, bound, servers)))
        except (ReadError, LookupError) as exc:
            return StateValue(error=str(exc))

    def _find(self, query: StateQuery) -> tuple[Reader, Mapping[str, str]]:
        return (parse_reader(query.read), {}) if query.read else self.spec.find_reader(query.text)

    def _look(self, place: Place, bound: Mapping[str, str] | None = None, servers: LiveServers | None = None) -> Look:
        return Look(place, bound or {}, self._load, servers, self.pristine)

    async def check(self, place: Place) -> str | None:
        """Prepares once and hashes: the pristine state that every trial must start from.

        Raises:
            HarnessError: reset.
        """
        try:
            with anyio.fail_after(CHECK_TIMEOUT_S):
                await self.prepare(place)
                return await self.state_hash(place)
        except TimeoutError:
            raise HarnessError("reset", f"the reset did not end within {CHECK_TIMEOUT_S:g} s") from None


def _no_plug(name: str) -> NoReturn:
    raise ReadError(f"{name!r} cannot be loaded here")


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of a directory's names and contents; links count by their target, missing is a value."""
    digest = hashlib.sha256()
    for item in sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else [path]:
        digest.update(str(item.relative_to(path)).encode("utf-8", "surrogateescape") + b"\0")
        if item.is_symlink():
            digest.update(b"link " + str(item.readlink()).encode("utf-8", "surrogateescape"))
        elif item.is_file():
            with item.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        else:
            digest.update(b"directory" if item.is_dir() else b"missing")
    return digest.hexdigest()
