"""The look ledger: every time held-out tasks were run or read, counted for ever beside the project."""

import time
from pathlib import Path

from mcptrials.encoding import dump_line
from mcptrials.errors import UsageError

NAME = "held_out_looks.jsonl"


def log_look(project_dir: Path, command: str, run_id: str) -> None:
    """Appends one look.

    Raises:
        UsageError: it cannot be noted, so it must not happen.
    """
    look = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "command": command, "run_id": run_id}
    path = project_dir / NAME
    try:
        with path.open("ab") as file:
            file.write(dump_line(look))
    except OSError as exc:
        what = f"this look at held-out tasks cannot be noted: {exc.strerror or exc}"
        raise UsageError(what, where=str(path), hint="make the file writable") from exc
