"""The child process of a local model: started, asked whether it lives, closed."""

import re
import secrets
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from mcptrials import excerpt
from mcptrials.errors import UsageError
from mcptrials.models.local_server import NO_RUNTIME

START_SECONDS = 60
CLOSE_SECONDS = 5
INSTALL = "pip install 'mcptrials[local]'"
_COMPLAINT = re.compile(r"[\d.]+ E (.+)")


@dataclass(frozen=True, slots=True)
class Served:
    """What a child is to serve, and how."""

    path: Path
    alias: str
    ctx: int
    threads: int
    template: Path | None

    @property
    def argv(self) -> list[str]:
        options = {"alias": self.alias, "ctx": self.ctx, "threads": self.threads, "template": self.template}
        flags = [word for key, value in options.items() if value is not None for word in (f"--{key}", str(value))]
        return [sys.executable, "-P", "-m", "mcptrials.models.local_server", str(self.path), *flags]


class Child:
    """A server process for one model; it ends when we close its input, or end ourselves."""

    def __init__(self, process: Process, said: IO[bytes], api_key: str) -> None:
        self._process, self._said = process, said
        self.api_key = api_key
        self.url = ""

    async def start(self, served: Served) -> None:
        """Wait until the model is loaded.

        Raises:
            UsageError: it cannot be.
        """
        with anyio.move_on_after(START_SECONDS):
            if line := await self._ready_line():
                self.url = f"{line.split()[1]}/v1"
                return
            await self._process.wait()
        raise self._failed_start(served)

    async def died(self) -> bool:
        """Whether the process is gone; one that is just ending is waited for."""
        with anyio.move_on_after(1):
            await self._process.wait()
        return self._process.returncode is not None

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    def last_words(self) -> str:
        """The last line of its standard error, or its exit code."""
        lines = self._said_lines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def first_complaint(self) -> str:
        """The first error that the runtime reported: the others, up to a traceback, only follow from it."""
        complaints = (_COMPLAINT.match(line) for line in self._said_lines())
        return next((found.group(1) for found in complaints if found), self.last_words())

    def _said_lines(self) -> list[str]:
        self._said.seek(0)
        lines = (line.strip() for line in self._said.read().decode(errors="replace").splitlines())
        return [excerpt.beginning(line, 300) for line in lines if line]

    async def aclose(self) -> None:
        """Close its input, upon which it ends; kill it if it does not."""
        with anyio.CancelScope(shield=True):
            if self._process.stdin:
                await self._process.stdin.aclose()
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._process.wait()
            await self.kill()

    async def kill(self) -> None:
        """End it at once; while it loads a model it hears nothing."""
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):  # it ended by itself
                self._process.kill()
            await self._process.aclose()
            self._said.close()

    async def _ready_line(self) -> str | None:
        """`READY URL SECONDS`; None when it ended instead."""
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        try:
            await self._process.stdin.send(f"{self.api_key}\n".encode())
            return (await BufferedByteReceiveStream(self._process.stdout).receive_until(b"\n", 1000)).decode()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.IncompleteRead):
            return None

    def _failed_start(self, served: Served) -> UsageError:
        if self._process.returncode == NO_RUNTIME:
            return UsageError(f"the runtime of local models is missing: {self.last_words()}", hint=INSTALL)
        if self.alive:
            what, hint = f"not loaded within {START_SECONDS} s", "free some memory or processor time, and try again"
        else:
            what, hint = self.first_complaint(), "check that the file is whole, and that there is memory for it"
        return UsageError(f"the model {served.alias} cannot be loaded: {what}", where=str(served.path), hint=hint)


async def start_child(served: Served) -> Child:
    """A running server for the model.

    Raises:
        UsageError: the model cannot be loaded.
    """
    said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
    process = await anyio.open_process(
        served.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
    )
    child = Child(process, said, secrets.token_urlsafe(24))
    try:
        await child.start(served)
    except BaseException:
        await child.kill()
        raise
    return child
