"""A server as a child process that speaks over its standard input and output."""

import errno
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import Process

from mcptrials import lineage
from mcptrials.errors import HarnessError, ServerError, boundary
from mcptrials.frozen import Frozen
from mcptrials.protocols import Place
from mcptrials.servers.background import background
from mcptrials.servers.channel import StdioChannel

_HOME = ".home"
_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""What a start fails of without any fault of the server: this machine's files, memory or processes are used up."""
_INHERITED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "SHELL",
    "USER",
    "LOGNAME",
    "SYSTEMROOT",
    "PYENV_ROOT",
)


class StdioServer(Frozen):
    """How to start a server from a command."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator[StdioChannel]:
        """The server, running. It is closed, and its whole process group gone, when the context ends.

        Raises:
            ServerError: server_start, when the command cannot be started.
            HarnessError: io, when this machine gives no more processes, files or memory.
        """
        with boundary(HarnessError, "io", f"server {self.name!r}: cannot make its directories"):
            temporary = _make_dirs(place)
        with closing(place.wire(self.name)) as wire:
            process, root = await self._spawn(place, temporary), place.trial_dir.parent
            lineage.mark(process.pid, root)
            channel = StdioChannel(process, wire, partial(lineage.end_descent, process.pid, root, temporary))
            async with background() as tasks:
                tasks.start_soon(channel.drain_stderr)
                tasks.start_soon(channel.notice_end)
                try:
                    yield channel
                finally:
                    with anyio.CancelScope(shield=True):
                        await channel.close()

    async def _spawn(self, place: Place, temporary: Path) -> Process:
        command = [place.expand(part) for part in (self.command, *self.args)]
        cwd = place.project_dir / place.expand(self.cwd or ".")
        try:
            return await anyio.open_process(
                command,
                cwd=cwd,
                env=self._environment(place, temporary),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            if isinstance(exc, OSError) and exc.errno in _OURS:
                what = f"server {self.name!r}: this machine cannot start another process: {exc.strerror}"
                raise HarnessError("io", f"{what}; lower 'concurrency' or raise the limit (ulimit)") from exc
            reason = f"{exc.strerror}: {exc.filename}" if isinstance(exc, OSError) and exc.filename else exc
            raise ServerError("server_start", f"server {self.name!r}: cannot start {command[0]!r}: {reason}") from exc

    def _environment(self, place: Place, temporary: Path) -> dict[str, str]:
        """Only what the project gives, what a process needs, and a home of the trial's own.

        Caches of package runners stay the user's, since filling them anew in every trial would dominate its time.
        """
        home, real_home = place.trial_dir / _HOME, Path.home()
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        own = {"HOME": home, "USERPROFILE": home, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary}
        caches = {"npm_config_cache": real_home / ".npm", "UV_CACHE_DIR": real_home / ".cache" / "uv"}
        python = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8", "PYTHONUSERBASE": str(real_home / ".local")}
        places = {name: str(path) for name, path in (own | caches).items()}
        return inherited | places | python | {name: place.expand(value) for name, value in self.env.items()}


def _make_dirs(place: Place) -> Path:
    """A home, and a directory for the temporary files of one server, which also marks what it starts."""
    (place.trial_dir / _HOME).mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".tmp-", dir=place.trial_dir))
