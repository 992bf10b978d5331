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
_RUNNER_OPTIONS = {
    "-e",
    "--env",
    "--directory",
    "--from",
    "--name",
    "--network",
    "--package",
    "--project",
    "--with",
    "-v",
}
"""Of package runners: what follows them is not what is run."""
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
    return Entry(name=name or _name_of(words, base), base=base, command=words[0], args=tuple(words[1:]))


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
    first = host.removeprefix("www.").partition(".")[0]
    return Entry(name=name or (first if first[0].isalpha() else "server"), base=base, url=without_fragment(url))


def without_fragment(url: str) -> str:
    """What of a URL is sent (RFC 9110, 7.1)."""
    return url.partition("#")[0]


def _name_of(words: Sequence[str], base: Path) -> str:
    """The module, script or package that is run; of `server.py`, which all are called, its folder."""
    for before, word in pairwise(["", *words]):
        value = before in _RUNNER_OPTIONS or (before.startswith("-") and SECRET_NAME.search(before))
        if value or word.startswith("-") or word in _SUBCOMMANDS or looks_issued(word):
            continue
        if _RUNNERS.fullmatch(Path(word).name):
            continue
        steps = [_ENDINGS.sub("", step) for step in reversed(word.split("/")) if step not in ("", ".", "..")]
        telling = [step for step in steps if step not in _UNTELLING and re.fullmatch(r"[\w.@-]+", step)]
        return telling[0] if telling else (base.name or "server")
    return "server"
