"""A run folder's lock: one writing process at a time, freed by the system however that process ends."""

import contextlib
import json
import os
import platform
from pathlib import Path
from typing import Any

from mcptrials.errors import UsageError

try:
    import fcntl
except ImportError:  # not on Windows: there the file's content alone decides
    fcntl = None  # type: ignore[assignment]


class Lock:
    """Holds `folder/lock`, whose content names the holder."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.path = folder / "lock"
        try:
            self._file = self.path.open("a+", encoding="utf-8", errors="replace")
        except OSError as exc:
            what = f"cannot lock the run: {exc.strerror or exc}"
            raise UsageError(what, where=str(self.path), hint="check its permissions") from exc
        self.previous = self._take()
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps({"pid": os.getpid(), "host": platform.node(), **facts}))
        self._file.flush()

    def _take(self) -> dict[str, Any]:
        """What the last holder left behind, if it did not end by itself."""
        self._file.seek(0)
        text = self._file.read()
        named: Any = {}
        with contextlib.suppress(ValueError, RecursionError):
            named = json.loads(text) if text else {}
        holder: dict[str, Any] = named if isinstance(named, dict) else {}
        if not self._free(holder):
            self._file.close()
            who = f"process {holder.get('pid')} on {holder.get('host')}"
            raise UsageError(f"the run is being written by {who}", where=str(self.path), hint="wait for it or stop it")
        return holder

    def _free(self, holder: dict[str, Any]) -> bool:
        if fcntl is None:
            return not holder
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Empties the file, which says that its holder ended by itself, and lets go."""
        self._file.seek(0)
        self._file.truncate()
        self._file.close()
