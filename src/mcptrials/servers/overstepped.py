"""Overstepped: which of its limits a server met, as far as its end and its last words tell."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from mcptrials.servers.sandbox import Sandbox

_SIGNALS: Mapping[str, str] = {"SIGXCPU": "cpu_seconds", "SIGXFSZ": "file_mb"}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "memory_mb": (
        "MemoryError",
        "std::bad_alloc",
        "Cannot allocate memory",
        "memory allocation of",
        "[Errno 12]",
        "ENOMEM",
    ),
    "file_mb": ("File too large", "[Errno 27]", "EFBIG"),
    "open_files": ("Too many open files", "[Errno 24]", "EMFILE"),
}
"""What programs say of an error that a limit causes: the system's texts, and the names of Python and Node for them."""
_LAST = 2000
"""Characters of stderr that say what a program ended of."""


@dataclass
class Overstepped:
    """What is known of one server's limits."""

    sandbox: Sandbox | None
    too_many: bool = False
    """Whether it was ended for its number of processes."""

    def limit(self, exit_code: int | None, stderr_tail: str) -> str | None:
        """The key of the limit that a server ended of; None where that cannot be told."""
        box = self.sandbox
        if box is None or box.mode == "off" or exit_code == 0:
            return None
        if self.too_many:
            return "processes"
        found = _SIGNALS.get(signal_name(exit_code)) or _said(stderr_tail)
        return found if found and getattr(box, found) is not None else None


def _said(stderr: str) -> str | None:
    last = stderr[-_LAST:]
    places = {limit: max(last.rfind(word) for word in words) for limit, words in _WORDS.items()}
    latest = max(places, key=lambda limit: places[limit])
    return latest if places[latest] >= 0 else None


def ended_how(exit_code: int) -> str:
    """In words, with the signal that says why."""
    name = signal_name(exit_code) if exit_code < 0 else ""
    limit = f" (limit {_SIGNALS[name]!r})" if name in _SIGNALS else ""
    return f"was ended by {name}{limit}" if name else f"exited with code {exit_code}"


def signal_name(exit_code: int | None) -> str:
    """Of the signal that ended a process; containers report it as 128 and more."""
    number = -exit_code if exit_code is not None and exit_code < 0 else (exit_code or 0) - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
