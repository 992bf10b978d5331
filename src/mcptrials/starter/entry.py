"""Entry: one server as its user starts it today, before anything of it is written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from mcptrials.errors import UsageError
from mcptrials.redaction import SECRET_NAME
from mcptrials.starter.harmless import looks_issued

_RUNNERS = re.compile(r"(python|pypy|node|deno|bun|npx|bunx|uvx|uv|pipx|docker|podman|env)[\d.]*(\.exe|\.cmd)?")
_SUBCOMMANDS = {"run", "exec", "tool", "x", "dlx"}
_ENDINGS = re.compile(r"\.(py|js|mjs|cjs|ts|sh|exe|jar)$|@[\w.^~-]+$")
_UNTELLING = {"index", "main", "server", "__main__", "dist", "build", "src"}


@dataclass(frozen=True)
class Entry:
    """How a server is started, or where it listens; its texts may hold secrets and placeholders."""

    name: str
    base: Path
    """The folder that relative paths start from."""
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def transport(self) -> str:
        return "stdio" if self.url is None else "http"


def from_command(words: Sequence[str], name: str | None, base: Path) -> Entry:
    """The server that a command line starts."""
    return Entry(name=name or _name_of(words), base=base, command=words[0], args=tuple(words[1:]))


def from_url(url: str, name: str | None, base: Path) -> Entry:
    """The server at a URL.

    Raises:
        UsageError: it is no HTTP URL.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = None, None
    if parts is None or parts.scheme not in ("http", "https") or not host:
        raise UsageError("--url takes the address of an HTTP server", hint="such as http://127.0.0.1:8000/mcp")
    return Entry(name=name or host.removeprefix("www.").partition(".")[0], base=base, url=url)


def _name_of(words: Sequence[str]) -> str:
    """The first word that tells one server from another: a module, a script or a package."""
    for before, word in pairwise(["", *words]):
        value = before.startswith("-") and SECRET_NAME.search(before)
        if value or word.startswith("-") or word in _SUBCOMMANDS or looks_issued(word):
            continue
        if _RUNNERS.fullmatch(Path(word).name):
            continue
        steps = [_ENDINGS.sub("", step) for step in reversed(word.split("/")) if step not in ("", ".", "..")]
        for step in steps:
            if step and step not in _UNTELLING and re.fullmatch(r"[\w.@-]+", step):
                return step
    return "server"
