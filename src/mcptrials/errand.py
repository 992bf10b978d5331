"""Errand: a command of others, run to its end: bounded in time and output, with no process left behind."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, Process

from mcptrials import excerpt, lineage

KEPT_OF_STDERR = 64 << 10
_LAST_OUTPUT_S = 2.0
"""How long output is awaited after the command's end: what it left running may hold its pipes open."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What is run, and within which bounds."""

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    timeout_s: float
    max_bytes: int
    own_dir: Path | None = None
    """A directory that its environment names and no other's, inside that of the run: what it starts is found by it."""


@dataclass(frozen=True, slots=True)
class Done:
    """How it ended; a negative code is the signal that ended it."""

    code: int
    output: bytes
    errors: bytes
    """The last of its stderr: one byte more than is kept says that there was more."""
    too_much: bool
    """Whether it was ended since it printed more than it may."""


async def run(errand: Errand) -> Done:
    """Runs a command. However this ends, also when it is cancelled, its process group is gone.

    Raises:
        TimeoutError: it did not end in time.
        OSError, ValueError: it cannot be started.
    """
    output, errors = bytearray(), bytearray()
    with anyio.fail_after(errand.timeout_s):
        process = await anyio.open_process(
            errand.argv,
            cwd=errand.folder,
            env=errand.environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        if errand.own_dir:
            lineage.mark(process.pid, errand.own_dir.parent)
        async with process:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_collect, process, output, errand.max_bytes)
                    tasks.start_soon(_keep_tail, process.stderr, errors)
                    await process.wait()
                    _kill_group(process)
                    await _end_strays(process, errand.own_dir)
                    tasks.cancel_scope.deadline = anyio.current_time() + _LAST_OUTPUT_S
            finally:
                _kill_group(process)
                await _end_strays(process, errand.own_dir)
    too_much = len(output) > errand.max_bytes
    return Done(process.returncode or 0, bytes(output[: errand.max_bytes]), bytes(errors), too_much)


async def _end_strays(process: Process, own_dir: Path | None) -> None:
    """What made itself a daemon has left the process group."""
    if own_dir:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lineage.end_descent, process.pid, own_dir.parent, own_dir)


async def _collect(process: Process, output: bytearray, max_bytes: int) -> None:
    while chunk := await _receive(process.stdout):
        output += chunk
        if len(output) > max_bytes:
            _kill_group(process)
            return


async def _keep_tail(stream: ByteReceiveStream | None, tail: bytearray) -> None:
    while chunk := await _receive(stream):
        tail += chunk
        del tail[: -KEPT_OF_STDERR - 1]


async def _receive(stream: ByteReceiveStream | None) -> bytes:
    try:
        return await stream.receive() if stream else b""
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return b""


def _kill_group(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def tail_text(tail: bytes) -> str:
    """The last of stderr as text."""
    return excerpt.end(tail[1:]) if len(tail) > KEPT_OF_STDERR else tail.decode("utf-8", "replace")
