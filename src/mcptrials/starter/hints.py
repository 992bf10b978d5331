"""Hints: what a server's arguments tell of the state that it works on."""

import re
from dataclasses import dataclass
from pathlib import Path

from mcptrials.starter.entry import Entry

_DATABASE = re.compile(r"\.(db|sqlite3?|db3)$", re.IGNORECASE)
_URL = re.compile(r"sqlite(?:\+\w+)?:/{2,4}(?P<path>[^?#]+)")
_STATE_FILE = re.compile(r"\.(json|jsonl|csv|txt|md|ya?ml|toml|xml)$", re.IGNORECASE)
_CODE = re.compile(r"(config|settings|package|tsconfig|requirements|pyproject)", re.IGNORECASE)


@dataclass(frozen=True)
class StateHint:
    """A file or directory that a server seems to keep its state in."""

    written: str
    """As it stands in the argument or variable."""
    path: str
    """The path in it."""
    is_database: bool
    is_folder: bool

    @property
    def own(self) -> str:
        """The copy of a trial's own."""
        return f"{{trial_dir}}/{Path(self.path).name}"


def state_hints(entry: Entry) -> list[StateHint]:
    """In order of the arguments, then of the environment; the same path once."""
    texts = [arg.partition("=")[2] if arg.startswith("-") and "=" in arg else arg for arg in entry.args]
    found: dict[str, StateHint] = {}
    for text in (*texts, *entry.env.values()):
        hint = None if "${" in text or text.startswith("-") else _hint(text, entry.base)
        if hint and Path(hint.path).name:
            found.setdefault(hint.path, hint)
    return list(found.values())


def _hint(text: str, base: Path) -> StateHint | None:
    url = _URL.fullmatch(text)
    path = url["path"] if url else text
    if url or _DATABASE.search(path):
        return StateHint(text, path, is_database=True, is_folder=False)
    if "://" in path or "{" in path:
        return None
    try:
        real = (base / path).resolve()
        if real.is_dir() and real.parent != real:
            return StateHint(text, path, is_database=False, is_folder=True)
    except (OSError, ValueError):
        return None
    if _STATE_FILE.search(path) and not _CODE.search(path):
        return StateHint(text, path, is_database=False, is_folder=False)
    return None
