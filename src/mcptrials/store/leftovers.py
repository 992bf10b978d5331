"""The trial directories and processes of one that was killed: removed and ended when they are provably this run's.

A run's folder may come from anywhere, so what its lock names is a claim only.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcptrials import lineage
from mcptrials.removal import remove_tree

_PREFIX = "mcptrials-"
_MARK = ".run"


def mark_owner(root: Path, run_id: str) -> None:
    """Says in a directory of trials whose it is."""
    if root.is_dir():
        (root / _MARK).write_text(run_id, "utf-8")


def remove_leftovers(claimed: Any, run_id: str) -> str | None:
    """Removes the directory that a run's last process named as its own, and ends what runs for it.

    Gives its name if it exists and is kept.
    """
    if not isinstance(claimed, str) or not claimed or "\0" in claimed:
        return None
    root = Path(claimed)
    if not os.path.lexists(root):
        return None
    if not _is_ours(root, run_id):
        return claimed
    lineage.end_run(root)
    with suppress(OSError):
        root.chmod(stat.S_IRWXU)  # it was made unlisted
    remove_tree(root)
    return None


def _is_ours(root: Path, run_id: str) -> bool:
    """A directory right in the one for temporary files, made by this user, that holds this run's mark."""
    mark = root / _MARK
    try:
        if not root.name.startswith(_PREFIX) or root.parent != Path(tempfile.gettempdir()).resolve():
            return False
        if not stat.S_ISDIR(root.lstat().st_mode) or not stat.S_ISREG(mark.lstat().st_mode):
            return False
        owners = {root.lstat().st_uid, mark.lstat().st_uid}
        return owners == {_own_uid(root)} and mark.read_text("utf-8") == run_id
    except (OSError, ValueError):
        return False


def _own_uid(root: Path) -> int:
    return os.geteuid() if hasattr(os, "geteuid") else root.lstat().st_uid
