"""The user's own commands: run in the project's folder, bounded in time and output, with no process left behind."""

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, Process

from mcptrials import excerpt
from mcptrials.environment.remains import MAX_BYTES, ReadError
from mcptrials.protocols import Place

_KEPT_OF_STDERR = 64 << 10
_LAST_OUTPUT_S = 2.0
"""How long output is awaited after the command's end: what it left running may hold its pipes open."""


async def run_command(argv: Iterable[str], place: Place, timeout_s: float) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a user's command.

    Raises:
        ReadError: it cannot be started, takes too long or prints too much.
    """
    argv = list(argv)
    environment = os.environ | {"MCPTRIALS_TRIAL_DIR": str(place.trial_dir), "PYTHONUTF8": "1"}
    try:
        with anyio.fail_after(timeout_s):
            code, output, errors = await _run(argv, place.project_dir, environment)
    except TimeoutError:
        raise ReadError(f"{argv[0]!r} did not end within {timeout_s:g} s") from None
    except (OSError, ValueError) as exc:
        raise ReadError(f"cannot start {argv[0]!r}: {getattr(exc, 'strerror', None) or exc}") from exc
    if len(output) > MAX_BYTES:
        raise ReadError(f"{argv[0]!r} printed more than {MAX_BYTES >> 20} MiB")
    return code, output.decode("utf-8", "replace"), _tail_text(errors)


async def _run(argv: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
    output, errors = bytearray(), bytearray()
    process = await anyio.open_process(
        argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )
    async with process:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_collect, process, output)
                tasks.start_soon(_keep_tail, process.stderr, errors)
                await process.wait()
                _kill_group(process)
                tasks.cancel_scope.deadline = anyio.current_time() + _LAST_OUTPUT_S
        finally:
            _kill_group(process)
    return process.returncode or 0, bytes(output), bytes(errors)


async def _collect(process: Process, output: bytearray) -> None:
    while chunk := await _receive(process.stdout):
        output += chunk
        if len(output) > MAX_BYTES:
            _kill_group(process)
            return


async def _keep_tail(stream: ByteReceiveStream | None, tail: bytearray) -> None:
    while chunk := await _receive(stream):
        tail += chunk
        del tail[: -_KEPT_OF_STDERR - 1]


def _tail_text(tail: bytes) -> str:
    """One byte more than is kept says that there was more."""
    return excerpt.end(tail[1:]) if len(tail) > _KEPT_OF_STDERR else tail.decode("utf-8", "replace")


async def _receive(stream: ByteReceiveStream | None) -> bytes:
    try:
        return await stream.receive() if stream else b""
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return b""


def _kill_group(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def last_line(text: str) -> str:
    """The last words of a failed command."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return excerpt.beginning(lines[-1], 300) if lines else "it printed nothing on stderr"
