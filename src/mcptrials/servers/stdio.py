"""A server as a child process that speaks over its standard input and output."""

import errno
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    closing,
    nullcontext,
)
from functools import partial
from pathlib import Path

import anyio
from pydantic import ConfigDict, SkipValidation

from mcptrials import lineage
from mcptrials.errors import HarnessError, ServerError, boundary
from mcptrials.frozen import Frozen
from mcptrials.protocols import Place
from mcptrials.servers.background import together
from mcptrials.servers.channel import Child, StdioChannel
from mcptrials.servers.confinement import Confinement, Start
from mcptrials.servers.overstepped import Overstepped

_HOME = ".home"
_LOCAL = ".local"
_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
    "XDG_DATA_HOME": f"{_LOCAL}/share",
    "XDG_STATE_HOME": f"{_LOCAL}/state",
}
"""Where programs keep what is theirs, as freedesktop.org's specification names it; all of it is the trial's."""
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
    confinement: SkipValidation[Confinement] | None = None
    """None: it may do whatever we may."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def open(self, place: Place) -> AbstractAsyncContextManager[StdioChannel]:
        """The server, running. It is closed, and its whole process group gone, when the context ends.

        Raises:
            TrialError: see `opened`.
        """
        return self.opened(place, partial(self._spawn, place))

    @asynccontextmanager
    async def opened(self, place: Place, begin: Callable[[Start], Awaitable[Child]]) -> AsyncIterator[StdioChannel]:
        """The same, in a process that `begin` makes: the leader of a group of its own.

        Raises:
            ServerError: server_start, when the command cannot be started.
            HarnessError: io, when this machine gives no more processes, files or memory.
        """
        with boundary(HarnessError, "io", f"server {self.name!r}: cannot make its directories"):
            temporary = make_dirs(place)
        with closing(place.wire(self.name)) as wire:
            process, root = await self._begun(place, temporary, begin), place.trial_dir.parent
            lineage.mark(process.pid, root)
            overstepped = Overstepped(self.confinement.sandbox if self.confinement else None)
            end_descent = partial(lineage.end_descent, process.pid, root, temporary)
            left_nothing = partial(self._left_nothing, process.pid, root, temporary)
            end = partial(self._end, place, end_descent)
            channel = StdioChannel(process, wire, end, overstepped.limit, left_nothing)
            async with together() as tasks:
                tasks.start_soon(channel.drain_stderr)
                tasks.start_soon(channel.notice_end)
                try:
                    with self._bounded(process.pid, root, overstepped):
                        yield channel
                finally:
                    with anyio.CancelScope(shield=True):
                        await channel.close()

    def _left_nothing(self, pid: int, root: Path, own_dir: Path) -> bool:
        contained = self.confinement is not None and self.confinement.sandbox.mode == "container"
        return not contained and lineage.left_nothing(pid, root, own_dir)

    def _end(self, place: Place, end_descent: Callable[[], int]) -> int:
        ended = end_descent()
        if self.confinement:
            self.confinement.end(place)
        return ended

    def _bounded(self, pid: int, root: Path, overstepped: Overstepped) -> AbstractContextManager[None]:
        """A server that runs more processes than it may is ended with all of them."""

        def end() -> None:
            overstepped.too_many = True
            lineage.end_marked(pid, root)

        return self.confinement.bounded(pid, end) if self.confinement else nullcontext()

    async def _begun(self, place: Place, temporary: Path, begin: Callable[[Start], Awaitable[Child]]) -> Child:
        start = self.start(place, temporary)
        try:
            return await begin(start)
        except (OSError, ValueError) as exc:
            if isinstance(exc, OSError) and exc.errno in _OURS:
                what = f"server {self.name!r}: this machine cannot start another process: {exc.strerror}"
                raise HarnessError("io", f"{what}; lower 'concurrency' or raise the limit (ulimit)") from exc
            reason = f"{exc.strerror}: {exc.filename}" if isinstance(exc, OSError) and exc.filename else exc
            what = f"server {self.name!r}: cannot start {start.argv[0]!r}: {reason}"
            raise ServerError("server_start", what) from exc

    def start(self, place: Place, temporary: Path) -> Start:
        """What is to be started there, as the project says it."""
        command = [place.expand(part) for part in (self.command, *self.args)]
        cwd = place.project_dir / place.expand(self.cwd or ".")
        return Start(command, cwd, self._environment(place, temporary))

    async def _spawn(self, place: Place, start: Start) -> Child:
        with self.confinement.launch(start, place) if self.confinement else nullcontext(start) as started:
            return await anyio.open_process(
                started.argv,
                cwd=started.cwd,
                env=started.env,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=started.descriptors,
            )

    def _environment(self, place: Place, temporary: Path) -> dict[str, str]:
        """Only what the project gives, what a process needs, and a home of the trial's own.

        Caches of package runners stay the user's, since filling them anew in every trial would dominate its time.
        """
        home, real_home = place.trial_dir / _HOME, Path.home()
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        own = {"HOME": home, "USERPROFILE": home, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary}
        own["XDG_RUNTIME_DIR"] = temporary
        own |= {name: home / folder for name, folder in _XDG.items()}
        caches = {"npm_config_cache": real_home / ".npm", "UV_CACHE_DIR": real_home / ".cache" / "uv"}
        python = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8", "PYTHONUSERBASE": str(real_home / ".local")}
        places = {name: str(path) for name, path in (own | caches).items()}
        return inherited | places | python | {name: place.expand(value) for name, value in self.env.items()}


def make_dirs(place: Place) -> Path:
    """A home, and a directory for the temporary files of one server, which also marks what it starts."""
    if place.trial_dir.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place.trial_dir))
    home = place.trial_dir / _HOME
    for folder in ("", _LOCAL, *_XDG.values()):
        (home / folder).mkdir(mode=0o700, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".tmp-", dir=place.trial_dir))
