"""The look ledger: every time held-out tasks were run or read, counted for ever beside the project."""

import time
from pathlib import Path
from typing import Any

from mcptrials.encoding import dump_line, parse_json

NAME = "held_out_looks.jsonl"


def log_look(project_dir: Path, command: str, run_id: str) -> None:
    """Appends one look."""
    look = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "command": command, "run_id": run_id}
    with (project_dir / NAME).open("ab") as file:
        file.write(dump_line(look))


def looks(project_dir: Path) -> list[dict[str, Any]]:
    """Every look so far, oldest first."""
    path = project_dir / NAME
    if not path.exists():
        return []
    return [parse_json(line) for line in path.read_bytes().splitlines() if line.strip()]
