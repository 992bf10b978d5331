"""A server written in Python, each process of which is forked from one that has imported what it needs already."""

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import anyio

from mcptrials import excerpt, lineage
from mcptrials.errors import HarnessError, ServerError, boundary
from mcptrials.protocols import Place
from mcptrials.servers.background import background
from mcptrials.servers.channel import StdioChannel
from mcptrials.servers.confinement import LAUNCHER, Confined, Start
from mcptrials.servers.forked_process import Ends, ForkedProcess, read_number, send_all
from mcptrials.servers.stdio import StdioServer, make_dirs

_PROGRAM = Path(__file__).with_name("fork") / "forking.py"
_PARTS = (_PROGRAM, _PROGRAM.with_name("preloading.py"), LAUNCHER)
_START_S = 120.0
"""How long the imports may take."""
_FORK_S = 30.0
_MAX_ANSWER = 1 << 16
"""Bytes that tell what was imported."""
_SHOWN, _TAIL = 300, 4000
_INSTEAD = "name other modules under 'preload', or use isolation: spawn"


class ForkedServer:
    """See `protocols.Server`. Its fork server starts when it is first opened, and ends with `close`."""

    def __init__(self, plain: StdioServer, preload: Sequence[str] | None, make_place: Callable[[], Place]) -> None:
        """Args:
        plain: the same server, each process of which would be started anew.
        preload: modules to be imported; None: those that the script imports.
        make_place: gives the fork server a directory, beside those of the trials.
        """
        self.name = plain.name
        self._plain, self._preload, self._make_place = plain, preload, make_place
        self._source: _ForkServer | None = None
        self._starting = anyio.Lock()

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator[StdioChannel]:
        """See `StdioServer.open`.

        Raises:
            ServerError: server_start, also when the fork server ended while this trial went on.
        """
        forked: list[ForkedProcess] = []
        source = await self._started()
        async with background() as tasks:

            async def fork(start: Start) -> ForkedProcess:
                with self._rights(start, place) as (ruleset, limits):
                    asked = {"args": start.argv[1:], "cwd": str(start.cwd), "env": dict(start.env), "limits": limits}
                    forked.append(await source.fork(asked, ruleset, place.trial_dir.parent))
                tasks.start_soon(forked[0].watch)
                return forked[0]

            async with self._plain.opened(place, fork) as channel:
                yield channel
        if any(each.lost for each in forked):
            raise source.failure("ended while its processes ran, which ended with it")

    def _rights(self, start: Start, place: Place) -> AbstractContextManager[tuple[int, str]]:
        confined = self._plain.confinement
        return confined.rights(start, place) if isinstance(confined, Confined) else nullcontext((-1, ""))

    async def _started(self) -> "_ForkServer":
        async with self._starting:
            if self._source is None:
                self._source = await _ForkServer.start(self._plain, self._preload, self._make_place())
            return self._source

    def facts(self) -> Mapping[str, Any] | None:
        """What was imported ahead, for the manifest; None before it was opened."""
        return {"preloaded": list(self._source.preloaded)} if self._source else None

    def close(self) -> None:
        if self._source:
            self._source.close()
            self._source = None


class _ForkServer:
    """The process that forks; see `forking`."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]", control: socket.socket, said: IO[bytes]) -> None:
        self._name, self._process, self._control, self._said = name, process, control, said
        self.preloaded: Sequence[str] = ()
        self.end_descent: Callable[[], object] = lambda: None

    @classmethod
    async def start(cls, plain: StdioServer, preload: Sequence[str] | None, place: Place) -> "_ForkServer":
        """Raises:
        ServerError: server_start, with what it said of it.
        """
        with boundary(HarnessError, "io", f"server {plain.name!r}: cannot make its directories"):
            temporary = make_dirs(place)
        started = _begin(plain, preload, place, temporary)
        pid, root = started._process.pid, place.trial_dir.parent
        lineage.mark(pid, root)
        started.end_descent = partial(lineage.end_descent, pid, root, temporary)
        try:
            await started._get_ready()
        except BaseException:
            started.close()
            raise
        return started

    async def _get_ready(self) -> None:
        answer = b""
        with anyio.move_on_after(_START_S) as limit:
            while not answer.endswith(b"\n"):
                await anyio.wait_readable(self._control)
                chunk = self._control.recv(_MAX_ANSWER)
                if not chunk:
                    raise self.failure("ended at its start")
                answer += chunk
                if len(answer) > _MAX_ANSWER:
                    break
        if limit.cancelled_caught:
            raise self.failure(f"did not finish its imports within {_START_S:g} s; {_INSTEAD}")
        match _parsed(answer):
            case {"ready": [*modules]}:
                self.preloaded = tuple(map(str, modules))
            case {"refused": str(why)}:
                what = f"its fork server cannot be used: {excerpt.beginning(why, _SHOWN)}"
                raise ServerError("server_start", f"server {self._name!r}: {what}; {_INSTEAD}")
            case _:
                raise self.failure(f"does not answer, since what it imports writes in its place; {_INSTEAD}")

    async def fork(self, asked: Mapping[str, Any], ruleset: int, root: Path) -> ForkedProcess:
        """Raises:
        OSError: there are no more processes or files.
        ServerError: server_start, the fork server is no longer there.
        """
        with ExitStack() as undo:
            with ExitStack() as handed:
                ends = Ends.make(undo, handed)
                await self._ask([*ends.theirs, *((ruleset,) if ruleset >= 0 else ())])
            pid = await self._pid(ends)
            pidfd = self._opened(pid)
            undo.callback(os.close, pidfd)
            lineage.mark(pid, root)  # before it can start anything
            process = ForkedProcess(pid, pidfd, ends)
            undo.pop_all()
        try:
            await send_all(ends.status, json.dumps(asked).encode())
            ends.status.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it is gone already, as its channel will find
        except BaseException:
            await process.aclose()
            raise
        return process

    async def _ask(self, descriptors: Sequence[int]) -> None:
        with anyio.move_on_after(_FORK_S):
            while True:
                try:
                    socket.send_fds(self._control, [b"1"], descriptors)
                except BlockingIOError:
                    await anyio.wait_writable(self._control)
                except ConnectionError:
                    break
                else:
                    return
        raise self.failure("takes no more requests")

    async def _pid(self, ends: Ends) -> int:
        pid = None
        with anyio.move_on_after(_FORK_S):
            pid = await read_number(ends.status)
        if not pid:
            raise self.failure("forks no more")
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def _opened(self, pid: int) -> int:
        """A descriptor of a process, after it is known that it is the fork server's: we mark and end what was named.

        Raises:
            OSError: there are no more files.
            ServerError: server_start, it is none.
        """
        with suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)  # from here on the number stands for no other process
            if _parent_of(pid) == self._process.pid:
                return pidfd
            os.close(pidfd)
        raise self.failure("names a process that is not its own")

    def failure(self, what: str) -> ServerError:
        """With its last words."""
        words = excerpt.telling(self._words(), _SHOWN)
        more = f": {words}" if words else ""
        return ServerError("server_start", f"server {self._name!r}: its fork server {what}{more}")

    def _words(self) -> str:
        stderr = self._process.stderr
        said = b""
        if stderr and not stderr.closed:
            with suppress(BlockingIOError):
                said = os.read(stderr.fileno(), 1 << 16)  # as much as a pipe holds: to its end there may be no end
        file = self._said.fileno()  # whose position is that of the process too
        tail = os.pread(file, _TAIL, max(0, os.fstat(file).st_size - _TAIL))
        return (said + tail).decode("utf-8", "replace")

    def close(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()
        self.end_descent()
        for stream in (self._process.stdout, self._process.stderr, self._said):
            if stream:
                stream.close()


def _parent_of(pid: int) -> int | None:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    return None


def _parsed(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None


def _begin(plain: StdioServer, preload: Sequence[str] | None, place: Place, temporary: Path) -> _ForkServer:
    start = plain.start(place, temporary)
    with ExitStack() as undo, ExitStack() as handed:
        said = undo.enter_context(tempfile.TemporaryFile())
        control, theirs = socket.socketpair()
        undo.callback(control.close)
        handed.callback(theirs.close)
        control.setblocking(False)
        order = {"control": theirs.fileno(), "said": said.fileno(), "args": start.argv[1:], "preload": preload}
        argv = [start.argv[0], str(_PROGRAM), json.dumps(order)]
        cwd = start.cwd if start.cwd.is_dir() else place.trial_dir  # it may be the trial's
        asked = replace(start, argv=argv, cwd=cwd, descriptors=(theirs.fileno(), said.fileno()))
        confined = _widened(plain.confinement, place.trial_dir.parent)
        try:
            with confined.launch(asked, place) if confined else nullcontext(asked) as begun:
                process = subprocess.Popen(
                    begun.argv,
                    cwd=begun.cwd,
                    env=begun.env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    pass_fds=begun.descriptors,
                )
        except (OSError, ValueError) as exc:
            what = f"server {plain.name!r}: cannot start {start.argv[0]!r}: {exc}"
            raise ServerError("server_start", what) from exc
        undo.pop_all()
    if process.stdin and process.stderr:
        process.stdin.close()
        os.set_blocking(process.stderr.fileno(), False)
    return _ForkServer(plain.name, process, control, said)


def _widened(confined: Any, root: Path) -> Confined | None:
    """The rights of the server, and to write the directory of every trial: a process that it forks can only have less.

    Processor time and open files are its own, since it forks for the whole run.
    """
    if not isinstance(confined, Confined):
        return None
    reach = replace(confined.reach, whole=(*confined.reach.whole, *_PARTS))
    box = confined.sandbox.model_copy(update={"cpu_seconds": None, "open_files": None})
    return replace(confined, sandbox=box, reach=reach, write=(*confined.write, root))
