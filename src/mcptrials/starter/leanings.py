"""Leanings of tools: which declare that they only read, which sound like it, and which may write."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mcptrials.presentation import RawTool, read_only

_READS = {
    "browse", "check", "compare", "count", "describe", "explain", "fetch", "find", "get", "has", "head", "inspect",
    "is", "list", "lookup", "peek", "read", "retrieve", "search", "show", "stat", "status", "summarize", "view",
}  # fmt: skip
_WRITES = {
    "add", "append", "apply", "archive", "assign", "cancel", "clear", "close", "commit", "copy", "create", "delete",
    "deploy", "drop", "edit", "execute", "insert", "install", "kill", "merge", "modify", "move", "patch", "pay", "post",
    "publish", "purge", "push", "put", "refund", "remove", "rename", "replace", "reset", "restart", "restore", "run",
    "save", "send", "set", "start", "stop", "submit", "update", "upload", "upsert", "write",
}  # fmt: skip


@dataclass(frozen=True)
class Leanings:
    """The names of a server's tools, in its order."""

    declared: tuple[str, ...]
    """They declare `readOnlyHint: true`."""
    guessed: tuple[str, ...]
    """Their names sound like reading; nothing says so."""
    writing: tuple[str, ...]
    """Any other: they may write."""

    @property
    def reading(self) -> tuple[str, ...]:
        return self.declared + self.guessed


def leanings(tools: Iterable[RawTool]) -> Leanings:
    declared: list[str] = []
    guessed: list[str] = []
    writing: list[str] = []
    for tool in tools:
        kind = declared if read_only(tool) else guessed if _sounds_reading(tool) else writing
        kind.append(str(tool["name"]))
    return Leanings(tuple(declared), tuple(guessed), tuple(writing))


def _sounds_reading(tool: RawTool) -> bool:
    hints = tool.get("annotations")
    if isinstance(hints, dict) and (hints.get("readOnlyHint") is False or hints.get("destructiveHint") is True):
        return False
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", str(tool["name"])[:200])
    words = re.findall(r"[a-z]+", spaced.lower())
    return bool(_READS & set(words[:2])) and not _WRITES & set(words)
