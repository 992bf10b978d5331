"""RunWriter: creates or continues a run folder and appends what happens to it."""

import os
import re
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self
from urllib.parse import quote

from anyio import to_thread

from mcptrials.encoding import dump_line, dump_text, parse_json
from mcptrials.errors import McptrialsError, UsageError
from mcptrials.events import Event
from mcptrials.record import Record
from mcptrials.redaction import Redactor
from mcptrials.store.disk import LineFile, sync, write_all, write_whole, writing
from mcptrials.store.leftovers import mark_owner, remove_leftovers
from mcptrials.store.lock import Lock
from mcptrials.store.structure import WIRE, event_shape, manifest_shape, record_shape
from mcptrials.trial import Trial

_FOLDERS = ("records", "transcripts", "wire")


def new_run_id() -> str:
    """Sorts by time; the random part keeps two runs of one second apart."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def refuse_run_folder(runs_dir: Path, run_id: str) -> None:
    """Finds out, before anything is spent, that a run's folder could not be made.

    Raises:
        UsageError: the name is none, is taken, or nothing can be written there.
    """
    if not re.fullmatch(r"\w[\w.-]{0,99}", run_id):
        raise UsageError(f"{run_id!r} is no name for a run", hint="use letters, digits, '.', '_' and '-'")
    try:
        if (runs_dir / run_id).exists():
            raise UsageError("a run of that name exists", where=str(runs_dir / run_id), hint="take another --name")
        above = next(folder for folder in (runs_dir, *runs_dir.parents) if folder.exists())
    except OSError as exc:
        raise _no_folder(runs_dir / run_id, exc) from exc
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "runs cannot be written there: " + ("no permission" if above.is_dir() else f"{above.name!r} is a file")
        raise UsageError(what, where=str(runs_dir), hint="check 'runs' in the project file")


def _no_folder(folder: Path, exc: Exception) -> UsageError:
    what = f"cannot make the run's folder: {getattr(exc, 'strerror', None) or exc}"
    return UsageError(what, where=str(folder), hint="check 'runs' in the project file")


class RunWriter:
    """The one process that writes a run. Nothing is rewritten: records and transcripts only grow."""

    def __init__(self, folder: Path, redactor: Redactor, trial_root: Path) -> None:
        self.folder, self._redactor = folder, redactor
        self._records: LineFile | None = None
        self._first_line = threading.Lock()
        self._lock = Lock(folder, {"trial_root": str(trial_root)})
        self.left = remove_leftovers(self._lock.previous.get("trial_root"), folder.name)
        """Trial directories that the run's last process may have left, and that were not removed."""
        with writing(folder):
            mark_owner(trial_root, folder.name)
            for name in _FOLDERS:
                (folder / name).mkdir(exist_ok=True)

    @classmethod
    def create(cls, runs_dir: Path, manifest: Mapping[str, Any], redactor: Redactor, trial_root: Path) -> "RunWriter":
        """A new run folder with its frozen manifest; nothing is left behind when it cannot be made.

        Raises:
            UsageError: the folder exists or cannot be written.
        """
        folder = runs_dir / manifest["run_id"]
        refuse_run_folder(runs_dir, manifest["run_id"])
        try:
            folder.mkdir(parents=True)
        except OSError as exc:
            raise _no_folder(folder, exc) from exc
        try:
            write_whole(folder / "manifest.json", dump_text(_clean(manifest, redactor)).encode())
            return cls(folder, redactor, trial_root)
        except (OSError, McptrialsError) as exc:
            shutil.rmtree(folder, ignore_errors=True)
            raise _no_folder(folder, exc) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def as_written(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """A manifest as this run's stands in its file."""
        return _clean(manifest, self._redactor)

    async def append(self, record: Record) -> Record:
        """Puts a record on the disk, and gives it as it stands there: without secrets.

        Raises:
            IncompleteError: the disk is full or gone.
        """
        line = dump_line(record.model_dump())
        clean = self._redactor.line(line, record_shape())
        with writing(self.folder):
            await to_thread.run_sync(self._append, clean, record.transcript)
        return record if clean == line else Record.model_validate(parse_json(clean))

    def _append(self, line: bytes, transcript: str) -> None:
        """The transcript is on the disk before the record that counts on it."""
        sync(self.folder / transcript)
        with self._first_line:
            if self._records is None:
                self._records = LineFile(_next_writer(self.folder / "records"))
        self._records.append(line)

    def open_trial(self, trial: Trial) -> "TrialFiles":
        with writing(self.folder):
            return TrialFiles(self.folder, trial.name, self._redactor)

    def discard_if_empty(self) -> None:
        """Leaves no folder behind when nothing was recorded in it."""
        if self._records is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        if self._records:
            self._records.close()
        self._lock.release()


def _clean(manifest: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    clean: dict[str, Any] = redactor.value(dict(manifest), manifest_shape())
    return clean


class TrialFiles:
    """The transcript and the wire logs of one trial, written while it runs."""

    def __init__(self, folder: Path, name: str, redactor: Redactor) -> None:
        self._folder, self._name, self._redactor = folder, name, redactor
        self._starts: Counter[str] = Counter()
        self.transcript = f"transcripts/{name}.jsonl"
        self._file = _opened_fresh(folder / self.transcript, buffering=0)

    def write(self, event: Event) -> None:
        """One event; in the file, if not yet on the disk, when this returns."""
        line = self._redactor.line(dump_line(event.model_dump()), event_shape(type(event)))
        with writing(self._folder):
            write_all(self._file.fileno(), line)

    def wire(self, server: str) -> "WireFile":
        """A log of its own for each server, and for each time that a server is started."""
        self._starts[server] += 1
        again = f"~{self._starts[server]}" if self._starts[server] > 1 else ""
        with writing(self._folder):
            path = self._folder / "wire" / f"{self._name}.{quote(server, safe='')}{again}.jsonl"
            return WireFile(self._folder, path, self._redactor)

    def close(self) -> None:
        self._file.close()


class WireFile:
    """Every frame of one server: direction, monotonic milliseconds since the log began, and the text as it passed."""

    def __init__(self, folder: Path, path: Path, redactor: Redactor) -> None:
        self._folder, self._redactor = folder, redactor
        self._file = _opened_fresh(path)
        self._began_s = time.monotonic()

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None:
        entry = {
            "ms": round((at_s - self._began_s) * 1000, 3),
            "dir": direction,
            "frame": line.decode("utf-8", "backslashreplace"),
        }
        with writing(self._folder):
            self._file.write(self._redactor.line(dump_line(entry), WIRE))

    def close(self) -> None:
        with writing(self._folder):
            self._file.close()


def _next_writer(records: Path) -> Path:
    """Every process that records in a run has a file of its own, numbered on."""
    digits = [path.stem.removeprefix("w") for path in records.glob("*.jsonl")]
    return records / f"w{max([int(number) for number in digits if number.isdecimal()], default=0) + 1}.jsonl"


def _opened_fresh(path: Path, buffering: int = -1) -> BinaryIO:
    """A new file; what a killed process left there is set aside as evidence."""
    try:
        return path.open("xb", buffering=buffering)
    except FileExistsError:
        number = 1
        while (aside := path.with_name(f"{path.stem}.lost-{number}{path.suffix}")).exists():
            number += 1
        path.rename(aside)
        return path.open("xb", buffering=buffering)
