"""Run: the reader of a run folder."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from mcptrials.encoding import parse_json
from mcptrials.errors import UsageError, describe
from mcptrials.events import Event, parse_event
from mcptrials.matrix import first_scored, plan
from mcptrials.record import SCHEMA_VERSION, Record
from mcptrials.store.disk import read_regular
from mcptrials.store.grades import chosen_grades, read_grades
from mcptrials.task import MAX_TRIALS, Split, Task
from mcptrials.transcript import CallMade, Transcript
from mcptrials.trial import Arm, Trial

if TYPE_CHECKING:
    import pandas


class _Stated(BaseModel):
    """What readers need of a manifest; a damaged one is found out before anything is made of it."""

    run_id: str
    split: Split
    seed: int
    trials: int = Field(ge=1, le=MAX_TRIALS)
    max_invalid: float
    tasks: list[Task]
    arms: list[dict[str, Any]] = Field(min_length=1)


def _problem(exc: Exception) -> str:
    if not isinstance(exc, ValidationError):
        return describe(exc)
    first = exc.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


class Run:
    """A run on disk: its frozen manifest, its records with the newest grades, its transcripts."""

    def __init__(self, folder: Path, manifest: dict[str, Any], grades: int = 0) -> None:
        self.folder, self.manifest = folder, manifest
        self.grades = grades
        """Which of its grades are read: those of file `grades/<n>.jsonl`; 0 are those of the run itself."""

    @classmethod
    def load(cls, folder: str | Path, grades: int | None = None) -> "Run":
        """Args:
            grades: which grades to read, 0 for those of the run itself; by default the newest.

        Raises:
            UsageError: no run folder, one of a later version, or no such grades.
        """
        folder = Path(folder)
        try:
            manifest = parse_json(read_regular(folder / "manifest.json"))
        except FileNotFoundError as exc:
            raise UsageError("this is no run folder", where=str(folder), hint="give a run id or its path") from exc
        except (OSError, ValueError) as exc:
            raise UsageError(f"the manifest cannot be read: {exc}", where=str(folder / "manifest.json")) from exc
        where = str(folder / "manifest.json")
        if not isinstance(manifest, dict) or not isinstance(manifest.get("schema_version"), int):
            raise UsageError("this is no manifest of a run", where=where, hint="restore the file")
        if manifest["schema_version"] > SCHEMA_VERSION:
            raise UsageError("the run was made by a later version", where=where, hint="update mcptrials")
        run = cls(folder, manifest, chosen_grades(folder, grades))
        try:
            _Stated.model_validate(manifest)
            _ = run.arms
        except (LookupError, TypeError, ValueError) as exc:
            raise UsageError(f"the manifest is damaged: {_problem(exc)}", where=where, hint="restore the file") from exc
        return run

    @property
    def run_id(self) -> str:
        return str(self.manifest["run_id"])

    @property
    def arms(self) -> dict[str, Arm]:
        """By arm id, in the order of the project file."""
        return {arm["id"]: Arm(**{key: arm[key] for key in arm if key != "id"}) for arm in self.manifest["arms"]}

    @property
    def tasks(self) -> dict[str, Task]:
        tasks = [Task.model_validate(task) for task in self.manifest["tasks"]]
        return {task.id: task for task in tasks}

    def planned(self) -> tuple[Trial, ...]:
        """Every trial of the frozen plan, in order."""
        manifest = self.manifest
        return plan(list(self.tasks.values()), list(self.arms), manifest["trials"], manifest["seed"])

    @property
    def scripted(self) -> bool:
        """Whether any arm's model is a script and no language model."""
        return any(arm.model.startswith("scripted:") for arm in self.arms.values())

    def attempts(self) -> Iterator[Record]:
        """Every record, also those of attempts that were not scored."""
        later = read_grades(self.folder, self.grades)
        for record in self.recorded():
            said = later.get(record.key)
            yield record.regraded(said) if said else record

    def recorded(self) -> Iterator[Record]:
        """Every record as it was first graded. A torn last line is ignored."""
        for path in sorted((self.folder / "records").glob("*.jsonl"), key=_writer_number):
            lines = _records_of(path).split(b"\n")
            for number, line in enumerate(lines[:-1], 1):
                yield self._record(path, number, line)
            yield from self._last(lines[-1])

    def _record(self, path: Path, number: int, line: bytes) -> Record:
        try:
            return Record.model_validate(parse_json(line))
        except ValueError as exc:
            where = f"{path}:{number}"
            raise UsageError("a record cannot be read", where=where, hint="remove the damaged line") from exc

    def _last(self, line: bytes) -> Iterator[Record]:
        """A line without its end was torn by a kill, unless only the end itself is missing."""
        try:
            yield Record.model_validate(parse_json(line))
        except ValueError:
            return

    def records(self) -> tuple[Record, ...]:
        """One record per trial: the first that was scored, else the last attempt."""
        with _without_collection():
            return first_scored(self.attempts())

    def trials_frame(self) -> "pandas.DataFrame":
        """A pandas frame with a row per trial and the record's names as columns; `passed` is None when not scored.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas  # noqa: PLC0415 - heavy, and only this needs it
        except ImportError as exc:
            raise UsageError("pandas is not installed", hint="pip install 'mcptrials[pandas]'") from exc
        names = list(Record.model_fields)
        return pandas.DataFrame([record.model_dump(include=set(names)) for record in self.records()], columns=names)

    def transcript(self, record: Record) -> Transcript:
        """A trial's events; a last line that a kill tore is left out.

        Raises:
            UsageError: the transcript is missing or damaged.
        """
        return Transcript(list(self.events(record)))

    def events(self, record: Record) -> Iterator[Event]:
        """The same, read while they are asked for."""
        return _events(self._transcript_of(record))

    def _transcript_of(self, record: Record) -> Path:
        """A run that came from elsewhere may name any file of this machine."""
        path = self.folder / record.transcript
        if self.folder.resolve() not in path.resolve().parents:
            what = f"the record of {record.task_id!r} names a transcript outside of its run: {record.transcript!r}"
            raise UsageError(what, where=str(self.folder), hint="restore the record")
        return path

    def calls(self, record: Record) -> tuple[CallMade, ...]:
        """A trial's tool calls, for which its other events need not be understood.

        Raises:
            UsageError: the transcript is missing or damaged.
        """
        return Transcript(_events(self._transcript_of(record), beginning=b'{"kind":"tool_')).calls


@contextmanager
def _without_collection() -> Iterator[None]:
    """While thousands of records are made that all stay, looking for garbage among them takes most of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _records_of(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as exc:
        what = f"records cannot be read: {exc.strerror}"
        raise UsageError(what, where=str(path), hint="restore the file") from exc


def _events(path: Path, beginning: bytes = b"") -> Iterator[Event]:
    try:
        *lines, torn = read_regular(path).split(b"\n")
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise UsageError(f"cannot read the transcript: {reason}", where=str(path)) from exc
    del torn
    for number, line in enumerate(lines, 1):
        try:
            if line.startswith(beginning):
                yield parse_event(parse_json(line))
        except ValueError as exc:
            raise UsageError("an event cannot be read", where=f"{path}:{number}", hint="restore the file") from exc


def _writer_number(path: Path) -> tuple[int, str]:
    digits = path.stem.lstrip("w")
    return (int(digits) if digits.isdecimal() else 0, path.stem)
