"""Weights on this machine: found in the cache, else fetched, and never used before their hash is right."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread

from mcptrials.errors import UsageError
from mcptrials.models.registry import Weights
from mcptrials.models.sources import Source, SourceError, sources_of

Progress = Callable[[str, int, int], None]
"""What is going on, in a few words; bytes got; bytes in all."""

STALL_SECONDS = 120
"""A download that gets no byte for so long is given up."""
_LOOK_SECONDS = 0.2
_MAGIC = b"GGUF"


def cache_folder() -> Path:
    """Where weights are kept: `$XDG_CACHE_HOME/mcptrials/models`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "mcptrials" / "models"


def ignore_progress(what: str, got: int, size: int) -> None:
    """Takes progress and does nothing."""


async def find_or_fetch(weights: Weights, progress: Progress = ignore_progress) -> Path:
    """The path of the weights; fetched on first use, whatever was got before kept.

    Raises:
        UsageError: they can be had nowhere, or there is no room for them.
    """
    folder = cache_folder()
    path = folder / f"{weights.sha256}.gguf"
    if await _is_right(path, weights, progress):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        async with _alone(folder / f"{weights.sha256}.lock", weights, progress):
            if not await _is_right(path, weights, progress):  # another process may have fetched them meanwhile
                await _fetch(weights, path, progress)
    except OSError as exc:
        raise UsageError(
            f"cannot keep the weights of {weights.name}: {exc.strerror or exc}",
            where=str(exc.filename or folder),
            hint="set XDG_CACHE_HOME to a folder that can be written",
        ) from exc
    return path


def user_file(path: Path) -> Path:
    """`path`, if it is a model file that exists.

    Raises:
        UsageError: it is not.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as exc:
        raise UsageError(
            f"cannot read the model file: {exc.strerror}", where=str(path), hint="give the path of a GGUF file"
        ) from exc
    if magic != _MAGIC:
        raise UsageError("not a GGUF model file", where=str(path), hint="convert it to GGUF, or give another file")
    return path


async def _fetch(weights: Weights, path: Path, progress: Progress) -> None:
    reasons = []
    for source in sources_of(weights):
        scratch = _scratch(path, source)
        scratch.mkdir(exist_ok=True)
        _check_room(weights, scratch, source.bytes_got(scratch))
        try:
            await _fetch_from(source, weights, scratch, progress)
        except SourceError as failure:
            reasons.append(f"{source.name}: {failure}")
        else:
            (scratch / weights.file).replace(path)
            _note_right(path)
            break
    else:
        raise UsageError(
            f"the weights of {weights.name} could not be fetched ({'; '.join(reasons)})",
            where=str(path),
            hint=f"check the network and run again, or put {weights.file} from {weights.upstream} there",
        )
    for source in sources_of(weights):
        shutil.rmtree(_scratch(path, source), ignore_errors=True)


def _scratch(path: Path, source: Source) -> Path:
    """Where a source puts what is not whole yet; kept when interrupted."""
    return path.with_suffix(f".{source.name.replace(' ', '-')}")


async def _fetch_from(source: Source, weights: Weights, scratch: Path, progress: Progress) -> None:
    file = await _watched(source, weights, scratch, progress)
    progress("checking", weights.size, weights.size)
    if file.stat().st_size != weights.size or await _sha256(file) != weights.sha256:
        shutil.rmtree(scratch)
        raise SourceError("what came has the wrong sha256 and was deleted")


async def _watched(source: Source, weights: Weights, scratch: Path, progress: Progress) -> Path:
    """Fetch while telling the progress; give up when no byte comes any more."""
    result: Path | SourceError | OSError = SourceError(f"no byte came for {STALL_SECONDS} s")

    async def fetch() -> None:
        nonlocal result
        try:
            result = await source.fetch(scratch)
        except (SourceError, OSError) as failure:
            result = failure
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(fetch)
        got, most, since = -1, 0, anyio.current_time()
        while anyio.current_time() - since < STALL_SECONDS:
            now = source.bytes_got(scratch)
            if now != got:
                got, since = now, anyio.current_time()
                most = max(most, got)  # a part is on the disk twice for a moment, while it is put in its place
                progress(f"from the {source.name}", most, weights.size)
            await anyio.sleep(_LOOK_SECONDS)
        group.cancel_scope.cancel()
    if isinstance(result, Path):
        return result
    raise result


def _check_room(weights: Weights, scratch: Path, got: int) -> None:
    free, needed = shutil.disk_usage(scratch).free, weights.size - got
    if free < needed:
        raise UsageError(
            f"no room for the weights of {weights.name}: {needed >> 20} MB needed, {free >> 20} MB free",
            where=str(scratch.parent),
            hint="free some space, or set XDG_CACHE_HOME to a folder on another disk",
        )


@asynccontextmanager
async def _alone(lock: Path, weights: Weights, progress: Progress) -> AsyncIterator[None]:
    """Only one process at a time; the system drops the lock of one that dies."""
    with lock.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                progress("another process is fetching", 0, weights.size)
                await anyio.sleep(_LOOK_SECONDS)
        yield


async def _is_right(path: Path, weights: Weights, progress: Progress) -> bool:
    """Whether the cached file is there and right; a wrong one is deleted."""
    known = _noted(path)
    if known != "unchecked":
        return known == "right"
    progress("checking", weights.size, weights.size)
    if await _sha256(path) == weights.sha256:
        _note_right(path)
        return True
    progress("the cached file has the wrong sha256 and is deleted", 0, weights.size)
    _delete(path)
    return False


def _delete(path: Path) -> None:
    path.unlink(missing_ok=True)


def _note_path(path: Path) -> Path:
    return path.with_suffix(".checked")


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _noted(path: Path) -> Literal["missing", "right", "unchecked"]:
    if not path.exists():
        return "missing"
    try:
        return "right" if json.loads(_note_path(path).read_bytes()) == _stamp(path) else "unchecked"
    except (OSError, ValueError):
        return "unchecked"


def _note_right(path: Path) -> None:
    """Note that the file as it stands has the right hash; checking takes seconds."""
    note = _note_path(path)
    new = note.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(_stamp(path)))
    new.replace(note)


async def _sha256(path: Path) -> str:
    return await to_thread.run_sync(_hash_file, path, abandon_on_cancel=True)


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
