"""Runs `mcptrials run` as a user does, and looks for what it leaves behind."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.real_servers.catalogue import RealServer

from mcptrials.store import Run


@dataclass(frozen=True)
class Evaluated:
    """A run of the command line that ended well."""

    document: Mapping[str, Any]
    run: Run


def require(server: RealServer) -> None:
    """Skips where the server is not installed; fails if its runtime is said to be required."""
    if not Path(server.program).exists():
        required = os.environ.get("MCPTRIALS_REQUIRE", "").replace(",", " ").split()
        reason = f"{server.package} is not installed: make servers"
        pytest.fail(reason) if server.runtime in required else pytest.skip(reason)


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path


def evaluate(project: Path, folder: Path, *arguments: str, within_s: float = 110) -> Evaluated:
    """A run whose files all lie in `folder`, with nothing else left when it ends."""
    temporary = folder / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "mcptrials", "run", "--json", "--project", str(project)]
    done = subprocess.run(
        [*command, "--set", f"runs={folder / 'runs'}", *arguments],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )
    document = json.loads(done.stdout)
    assert (done.returncode, document["error"]) == (0, None), done.stderr
    assert list(temporary.iterdir()) == []
    assert processes_of(temporary) == []
    return Evaluated(document, Run.load(document["data"]["run_dir"]))


def processes_of(folder: Path) -> list[str]:
    """The command lines of processes that have the folder in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text("utf-8", "replace"))
        except OSError:
            continue  # it has ended, or it is another user's
    return found
