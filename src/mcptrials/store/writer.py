"""RunWriter: creates or continues a run folder and appends what happens to it."""

import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from anyio import to_thread

from mcptrials.encoding import dump_line, dump_text
from mcptrials.events import Event
from mcptrials.record import Record
from mcptrials.redaction import Redactor
from mcptrials.store.disk import LineFile, make_folder, write_whole, writing
from mcptrials.store.lock import Lock
from mcptrials.store.run import Run
from mcptrials.trial import Trial

_FOLDERS = ("records", "transcripts", "wire")


def new_run_id() -> str:
    """Sorts by time; the random part keeps two runs of one second apart."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


class RunWriter:
    """The one process that writes a run. Nothing is rewritten: records and transcripts only grow."""

    def __init__(self, folder: Path, redactor: Redactor, trial_root: Path) -> None:
        self.folder, self._redactor = folder, redactor
        self._lock = Lock(folder, {"trial_root": str(trial_root)})
        self._remove_leftovers()
        with writing(folder):
            for name in _FOLDERS:
                (folder / name).mkdir(exist_ok=True)
            number = len(list((folder / "records").glob("*.jsonl"))) + 1
            self._records = LineFile(folder / "records" / f"w{number}.jsonl")

    @classmethod
    def create(
        cls, runs_dir: Path, run_id: str, manifest: Mapping[str, Any], redactor: Redactor, trial_root: Path
    ) -> "RunWriter":
        """A new run folder with its frozen manifest.

        Raises:
            UsageError: the folder exists or cannot be written.
        """
        folder = runs_dir / run_id
        make_folder(runs_dir, exist_ok=True)
        make_folder(folder, exist_ok=False)
        with writing(folder):
            write_whole(folder / "manifest.json", dump_text(redactor.value(dict(manifest))).encode())
        return cls(folder, redactor, trial_root)

    @property
    def run(self) -> Run:
        return Run.load(self.folder)

    def _remove_leftovers(self) -> None:
        """The trial directories of a holder that was killed; only those that it named as its own."""
        root = self._lock.previous.get("trial_root")
        if isinstance(root, str) and Path(root).name.startswith("mcptrials-"):
            shutil.rmtree(root, ignore_errors=True)

    async def append(self, record: Record) -> None:
        """Puts a record on the disk.

        Raises:
            IncompleteError: the disk is full or gone.
        """
        line = self._redactor.line(dump_line(record.model_dump(mode="json")))
        with writing(self.folder):
            await to_thread.run_sync(self._records.append, line)

    def open_trial(self, trial: Trial) -> "TrialFiles":
        with writing(self.folder):
            return TrialFiles(self.folder, trial.name, self._redactor)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        with writing(self.folder):
            write_whole(self.folder / "summary.json", dump_text(self._redactor.value(dict(summary))).encode() + b"\n")

    def close(self) -> None:
        self._records.close()
        self._lock.release()


class TrialFiles:
    """The transcript and the wire logs of one trial, written while it runs."""

    def __init__(self, folder: Path, name: str, redactor: Redactor) -> None:
        self._folder, self._name, self._redactor = folder, name, redactor
        self.transcript = f"transcripts/{name}.jsonl"
        self._file = _fresh(folder / self.transcript).open("wb", buffering=0)

    def write(self, event: Event) -> None:
        """One event; in the file, if not yet on the disk, when this returns."""
        with writing(self._folder):
            self._file.write(self._redactor.line(dump_line(event.model_dump(mode="python"))))

    def wire(self, server: str) -> "WireFile":
        safe = "".join(char if char.isalnum() or char in "._-" else "_" for char in server)[:80]
        with writing(self._folder):
            return WireFile(_fresh(self._folder / "wire" / f"{self._name}.{safe}.jsonl"), self._redactor.line)

    def close(self) -> None:
        self._file.close()


class WireFile:
    """Every frame of one server: direction, monotonic milliseconds since the log began, and the text as it passed."""

    def __init__(self, path: Path, scrub: Callable[[bytes], bytes]) -> None:
        self._folder = path.parent
        self._file = path.open("wb")
        self._scrub = scrub
        self._began_s = time.monotonic()

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None:
        entry = {
            "ms": round((at_s - self._began_s) * 1000, 3),
            "dir": direction,
            "frame": line.decode("utf-8", "backslashreplace"),
        }
        with writing(self._folder):
            self._file.write(self._scrub(dump_line(entry)))

    def close(self) -> None:
        with writing(self._folder):
            self._file.close()


def _fresh(path: Path) -> Path:
    """`path`, with what a killed process left there set aside as evidence."""
    if path.exists():
        number = 1
        while (aside := path.with_name(f"{path.stem}.lost-{number}{path.suffix}")).exists():
            number += 1
        path.rename(aside)
    return path
