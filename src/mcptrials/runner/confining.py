"""Confiner: which confinement each server of a run gets, from what the project asks for and what this machine has."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from mcptrials import lineage
from mcptrials.environment import TrialPlaces
from mcptrials.errors import UsageError
from mcptrials.project import Project, ServerConfig
from mcptrials.project.suite import matching
from mcptrials.protocols import Place
from mcptrials.runner.launch import Launch, is_package_runner
from mcptrials.runner.preflight import no_wire
from mcptrials.servers import landlock
from mcptrials.servers.confinement import Confined, Confinement, Start, find_program, tasks_of_user
from mcptrials.servers.container import Container
from mcptrials.servers.headcount import Headcount
from mcptrials.servers.reach import reach
from mcptrials.servers.sandbox import Sandbox
from mcptrials.servers.software import STORES, named_paths, software_of
from mcptrials.store.ledger import NAME as LOOKS

_CLIENT_NEEDS = ("PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSH_AUTH_SOCK", "TMPDIR")
_CLIENT_SETTINGS = ("DOCKER_", "CONTAINER", "PODMAN")
_CACHES = {"npx": (".npm",), "uvx": (".cache/uv", ".local/share/uv"), "uv": (".cache/uv", ".local/share/uv")}
"""What package runners must write, in the user's home."""


class Confiner:
    """Made once per run: what is there is looked at once."""

    def __init__(self, project: Project, places: TrialPlaces) -> None:
        self._project, self._places = project, places
        self._abi, self._used = landlock.abi(), tasks_of_user()
        self._headcount = Headcount(partial(lineage.count_descents, places.root))
        # Paths with {trial_dir} are of no trial yet, and so are not there.
        self._place = Place(places.root / "trial", project.dir, no_wire)

    def confinement(self, name: str, config: ServerConfig, launch: Launch | None) -> Confinement | None:
        """None for a server that is not to be confined, or that we do not start.

        Raises:
            UsageError: the machine has not what the project insists on.
        """
        box = config.sandbox
        if config.command is None or box is None or box.mode == "off":
            return None
        where = f"servers.{name}.sandbox"
        read, write = (
            self._existing(paths, f"{where}.{key}") for key, paths in (("read", box.read), ("write", box.write))
        )
        if box.mode == "container":
            return _container(name, config, box, (read, write), where)
        if box.mode == "landlock" and self._abi < landlock.MIN_ABI:
            raise UsageError(f"{_lacking(self._abi)}", where=where, hint="use 'auto' for limits only, or a container")
        if self._abi < landlock.MIN_ABI:
            return Confined(box, 0, used=self._used, headcount=self._headcount)
        program, args = (launch.command, launch.args) if launch else (config.command, config.args)
        return self._landlocked(config, box, [program, *args], (read, write))

    def _existing(self, paths: Iterable[str], where: str) -> tuple[Path, ...]:
        found = [self._project.dir / self._place.expand(path) for path in paths]
        for path in found:
            if not path.exists():
                what = f"there is no {str(path)!r}"
                raise UsageError(what, where=where, hint="mend the path; the trial's directory is allowed anyway")
        return tuple(found)

    def _landlocked(
        self, config: ServerConfig, box: Sandbox, command: Sequence[str], declared: tuple[tuple[Path, ...], ...]
    ) -> Confined:
        read, write = declared
        argv = [self._place.expand(word) for word in command]
        cwd = self._project.dir / self._place.expand(config.cwd or ".")
        variables = [self._place.expand(value) for value in config.env.values()]
        named = [*named_paths([*argv[1:], *variables], cwd), *read]
        try:
            program = find_program(Start(argv, cwd, os.environ))
        except OSError:  # it is the trial's, or its start says what is wrong
            program = Path(sys.executable)
        home = Path.home()
        folders = [cwd, *software_of(program, named, write), *(home / store for store in STORES)]
        runner = Path(argv[0]).name if is_package_runner(argv[0], argv[1:]) else ""
        caches = tuple(path for each in _CACHES.get(runner, ()) if (path := home / each).is_dir())
        within = reach(folders, self._hidden([program, *named]), named)
        return Confined(box, self._abi, within, (*write, *caches), self._used, self._headcount)

    def _hidden(self, needed: Sequence[Path]) -> tuple[Path, ...]:
        """What of the evaluation is no server's to read: answers above all. What stands beside them is hidden too, if a
        server does not stand there itself."""
        project, config = self._project, self._project.config
        tasks = [path for pattern in config.tasks for path in matching(project.dir, pattern)]
        scripts = [
            project.dir / model.model.partition(":")[2] for model in config.models if model.adapter == "scripted"
        ]
        beside = {
            path.parent
            for path in (*tasks, *scripts)
            if project.dir in path.parent.parents and not any(path.parent in each.parents for each in needed)
        }
        temporary = Path(tempfile.gettempdir())
        others = self._places.root if temporary in project.dir.parents else temporary
        own = [project.path, project.runs_dir, project.dir / LOOKS, others]
        return tuple(path.resolve() for path in (*own, *tasks, *scripts, *beside))


def _lacking(abi: int) -> str:
    if not abi:
        return "this system has no Landlock (Linux 5.19 or later, where it is not switched off)"
    return f"this kernel's Landlock is too old (version {abi}, {landlock.MIN_ABI} is needed)"


def _container(
    name: str, config: ServerConfig, box: Sandbox, declared: tuple[tuple[Path, ...], ...], where: str
) -> Container:
    if shutil.which(box.program) is None:
        hint = "install it, name the other one with 'program', or choose another 'mode'"
        raise UsageError(f"there is no program {box.program!r} to run containers", where=where, hint=hint)
    needs = {
        key: value for key, value in os.environ.items() if key in _CLIENT_NEEDS or key.startswith(_CLIENT_SETTINGS)
    }
    return Container(
        sandbox=box,
        server=name,
        own=tuple(config.env),
        client_env=tuple(needs.items()),
        user=f"{os.getuid()}:{os.getgid()}" if hasattr(os, "getuid") else None,
        workdir=config.cwd is not None,
        read=declared[0],
        write=declared[1],
    )
