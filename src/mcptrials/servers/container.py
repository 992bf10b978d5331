"""Container: a server started by docker or podman, in an image that the user names."""

import csv
import io
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcptrials.protocols import Place
from mcptrials.servers.confinement import Start, limits_of, told_limits
from mcptrials.servers.sandbox import MIB, Sandbox

REMOVE_S = 20.0
_CLIENT = ("DOCKER_", "CONTAINER", "PODMAN", "BUILDAH", "XDG_", "LD_", "SSL_")
"""Beginnings of variables that the client heeds itself."""
_OWN = ("PATH", "HOME", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME", "SHELL", "USERPROFILE", "SSH_AUTH_SOCK")
_FROM_IMAGE = ("PATH", "SHELL", "USER", "LOGNAME", "npm_config_cache", "UV_CACHE_DIR", "PYTHONUSERBASE")
"""What is of this machine, and has another value in the image."""


@dataclass(frozen=True, slots=True)
class Container:
    """See `confinement.Confinement`. The trial's directory has the same path inside and outside."""

    sandbox: Sandbox
    server: str
    own: tuple[str, ...]
    """Names of the variables that the project gives; all others are this machine's."""
    client_env: tuple[tuple[str, str], ...]
    """What the client needs to find its service."""
    user: str | None
    """Who owns the files, as UID:GID; podman maps the user by itself."""
    workdir: bool
    """Whether the project names a working directory, which is then one of the container."""
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()

    @contextmanager
    def launch(self, start: Start, place: Place) -> Iterator[Start]:
        given = {name: value for name, value in start.env.items() if name in self.own or name not in _FROM_IMAGE}
        passed = {name: value for name, value in given.items() if not _is_clients(name)}
        yield replace(start, argv=self.command_line(start, place, given), env=passed | dict(self.client_env))

    def command_line(self, start: Start, place: Place, given: dict[str, str]) -> list[str]:
        """Values of variables come from the client's environment, since command lines can be read by all users."""
        variables = [f"{name}={value}" if _is_clients(name) else name for name, value in given.items()]
        return [
            *(self.sandbox.program, "run", "--interactive", "--rm", "--init", "--name", self.name(place)),
            *("--security-opt", "no-new-privileges", "--cap-drop", "ALL"),
            *(self._user() if self.user else ()),
            *(() if self.sandbox.network else ("--network", "none")),
            *self._limits(),
            *(word for mount in self._mounts(start, place) for word in ("--mount", mount)),
            *(("--workdir", str(start.cwd)) if self.workdir else ()),
            *(word for variable in variables for word in ("--env", variable)),
            *("--entrypoint", start.argv[0], str(self.sandbox.image), *start.argv[1:]),
        ]

    def name(self, place: Place) -> str:
        """Of the container: unlike those of all other trials and servers."""
        return f"{place.trial_dir.parent.name}-{place.trial_dir.name}-{self.server}"

    def _user(self) -> tuple[str, ...]:
        return ("--userns", "keep-id") if self.sandbox.program == "podman" else ("--user", str(self.user))

    def _limits(self) -> Iterator[str]:
        box = self.sandbox
        if box.memory_mb is not None:
            yield from ("--memory", f"{box.memory_mb}m", "--memory-swap", f"{box.memory_mb}m")
        if box.processes is not None:
            yield from ("--pids-limit", str(box.processes))
        ulimits = (("cpu", box.cpu_seconds, 1), ("fsize", box.file_mb, MIB), ("nofile", box.open_files, 1))
        for name, amount, unit in ulimits:
            if amount is not None:
                yield from ("--ulimit", f"{name}={amount * unit}:{amount * unit}")
        yield from ("--ulimit", "core=0:0")

    def _mounts(self, start: Start, place: Place) -> Iterator[str]:
        for path in self.read:
            yield _mount(path, "readonly")
        for path in (*self.write, place.trial_dir):
            yield _mount(path)

    def bounded(self, pid: int, end: Callable[[], object]) -> AbstractContextManager[None]:
        return nullcontext()  # by the container itself, where its processes are

    def end(self, place: Place) -> None:
        """A client that was killed leaves its container behind."""
        command = [self.sandbox.program, "rm", "--force", self.name(place)]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, env=dict(self.client_env), capture_output=True, timeout=REMOVE_S, check=False)

    @property
    def holds(self) -> bool:
        return True

    def facts(self) -> dict[str, Any]:
        box = self.sandbox
        return {
            "mode": box.mode,
            "in_force": "container",
            "program": box.program,
            "image": box.image,
            "network": box.network,
            "read": [str(path) for path in self.read],
            "write": [str(path) for path in self.write],
            "limits": limits_of(box),
        }

    @property
    def title(self) -> str:
        return f"{self.sandbox.program} container of {self.sandbox.image}"

    def told(self) -> str:
        network = "with network" if self.sandbox.network else "no network"
        return f"{self.title}, {network}; {told_limits(self.sandbox)}"


def _mount(path: Path, *options: str) -> str:
    """As a line of CSV, since that is how it is read."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["type=bind", f"src={path}", f"dst={path}", *options])
    return line.getvalue()


def _is_clients(name: str) -> bool:
    return name in _OWN or name.startswith(_CLIENT)
