"""A private PostgreSQL: a cluster in a temporary folder, run by a user who is not root, on a socket of its own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_OWNERS = ("postgres", "nobody")
_DEADLINE_S = 60


def _programs() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb")
    return folders[-1] if folders else Path(found).parent if found else None


def programs() -> Path:
    """Where PostgreSQL's programs are; without them the test is skipped, unless they are required."""
    found = _programs()
    if found is None:
        missing = "PostgreSQL is not installed"
        if "postgresql" in os.environ.get("MCPTRIALS_REQUIRE", ""):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def _owner() -> str | None:
    """Root may not run a cluster; anybody else runs it as themselves."""
    if os.geteuid() != 0:
        return None
    known = {line.partition(":")[0] for line in Path("/etc/passwd").read_text("utf-8").splitlines()}
    return next(name for name in _OWNERS if name in known)


@contextmanager
def cluster() -> Iterator[str]:
    """The URL of a running server, which is gone afterwards. Its folder is short, for the socket's path is bounded."""
    binaries, owner = programs(), _owner()
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    if owner:
        shutil.chown(folder, owner)

    def run(*words: str) -> None:
        subprocess.run(words, cwd=folder, user=owner, check=True, timeout=_DEADLINE_S, stdout=subprocess.DEVNULL)

    try:
        run(str(binaries / "initdb"), "-D", str(folder / "d"), "-U", "tester", "-A", "trust", "-N", "-E", "UTF8")
        settings = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=16MB"
        run(str(binaries / "pg_ctl"), "-D", str(folder / "d"), "-l", str(folder / "log"), "-o", settings, "-w", "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            run(str(binaries / "pg_ctl"), "-D", str(folder / "d"), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
