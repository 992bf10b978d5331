"""Confinement: what of a sandbox is in force on this machine, and how a server is started in it."""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from mcptrials import lineage
from mcptrials.protocols import Place
from mcptrials.servers import landlock
from mcptrials.servers.headcount import Headcount
from mcptrials.servers.reach import NOWHERE, Reach
from mcptrials.servers.sandbox import MIB, Sandbox
from mcptrials.servers.software import DEVICES, SYSTEM
from mcptrials.servers.system_calls import filter_program

try:
    import resource
except ImportError:  # not on Windows, which has no such limits
    resource = None  # type: ignore[assignment]

LAUNCHER = Path(__file__).with_name("launcher.py")
_LAST_SECONDS = 5
"""Of processor time, for a server that handles the signal of its limit; then it is killed."""
_PER_PROCESS = 8
"""How many tasks the system may count for each process of a server: it counts threads too, and those of all servers."""


@dataclass(frozen=True, slots=True)
class Start:
    """A process about to be started."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    descriptors: tuple[int, ...] = ()
    """What it inherits besides its three streams."""


class Confinement(Protocol):
    """How a server's process is kept within its sandbox."""

    @property
    def sandbox(self) -> Sandbox: ...

    @contextmanager
    def launch(self, start: Start, place: Place) -> Iterator[Start]:
        """What is to be started instead, for as long as the context lasts.

        Raises:
            OSError: the command is not there, or the system refuses.
        """
        ...

    def bounded(self, pid: int, end: Callable[[], object]) -> AbstractContextManager[None]:
        """Calls `end` when the process runs more processes than it may, for as long as the context lasts."""
        ...

    def end(self, place: Place) -> None:
        """Ends what would outlive the process that was started."""
        ...

    def facts(self) -> dict[str, Any]:
        """What is in force, for the manifest."""
        ...

    @property
    def title(self) -> str:
        """The same in a few words."""
        ...

    def told(self) -> str:
        """The same in one line."""
        ...

    @property
    def holds(self) -> bool:
        """Whether the user's files are out of its reach."""
        ...


@dataclass(frozen=True)
class Confined:
    """Limits, and on kernels with Landlock the files that are within reach."""

    sandbox: Sandbox
    abi: int
    """The version of Landlock that is in force; 0: none."""
    reach: Reach = NOWHERE
    write: tuple[Path, ...] = ()
    used: int = 0
    """Processes and threads of this user before the first server was started."""
    headcount: Headcount | None = None
    """Of all servers of the run."""

    @contextmanager
    def launch(self, start: Start, place: Place) -> Iterator[Start]:
        if resource is None:
            yield start
            return
        with self.rights(start, place) as (descriptor, limits):
            python = [getattr(sys, "_base_executable", sys.executable), "-I", "-S", str(LAUNCHER)]
            mark = str(lineage.run_mark(place.trial_dir.parent))
            rights = [str(descriptor), filter_program() if self.abi else "", mark]
            argv = [*python, *rights, limits, start.env.get("LC_CTYPE", ""), *start.argv]
            inherited = start.descriptors if descriptor < 0 else (*start.descriptors, descriptor)
            yield replace(start, argv=argv, descriptors=inherited)

    @contextmanager
    def rights(self, start: Start, place: Place) -> Iterator[tuple[int, str]]:
        """What a process takes from itself: the descriptor of a ruleset (-1: none), and limits as `launcher` has them.

        Raises:
            OSError: the command is not there, or the system refuses.
        """
        with self._ruleset(place, find_program(start)) as descriptor:
            yield descriptor, ",".join(f"{number}:{soft}:{hard}" for number, soft, hard in self._limits())

    def _ruleset(self, place: Place, program: Path) -> Any:
        if not self.abi:
            return nullcontext(-1)
        own = (place.trial_dir, landlock.all_rights(self.abi))
        if place.trial_dir in Path(os.path.abspath(program)).parents:  # noqa: PTH100 - without following a link
            return landlock.ruleset(self.abi, (*self._rules(None), own))
        return landlock.ruleset(self.abi, (*self._rules(program), own))

    def _rules(self, program: Path | None) -> tuple[landlock.Rule, ...]:
        """Those of all trials, with the program that they start, found out once."""
        if program not in self._found:
            self._found[program] = self._find_rules(program)
        return self._found[program]

    @cached_property
    def _found(self) -> dict[Path | None, tuple[landlock.Rule, ...]]:
        return {}

    def _find_rules(self, program: Path | None) -> tuple[landlock.Rule, ...]:
        """What stands where a server may write is granted with that, and with nothing of its own:
        it may be a link by now, which leads to what the server wants to have."""
        everything = landlock.all_rights(self.abi)
        own = () if program is None else (program,)
        rules = [(path, landlock.READ) for path in (*SYSTEM, *self.reach.whole, *own)]
        rules += [(path, landlock.LIST) for path in self.reach.names]
        rules += [(path, everything) for path in (*DEVICES, *self.write)]
        return landlock.fewest(rule for rule in rules if not landlock.beneath(rule[0], self.write))

    def bounded(self, pid: int, end: Callable[[], object]) -> AbstractContextManager[None]:
        if self.headcount is None or self.sandbox.processes is None:
            return nullcontext()
        return self.headcount.bounded(pid, self.sandbox.processes, end)

    def _limits(self) -> Iterator[tuple[int, int, int]]:
        """RLIMIT_DATA rather than RLIMIT_AS: Node, Go and Java reserve far more addresses than they use."""
        box = self.sandbox
        wanted = (
            (resource.RLIMIT_CPU, box.cpu_seconds, 1),
            (resource.RLIMIT_DATA, box.memory_mb, MIB),
            (resource.RLIMIT_FSIZE, box.file_mb, MIB),
            (resource.RLIMIT_NOFILE, box.open_files, 1),
            (resource.RLIMIT_NPROC, box.processes and self.used + _PER_PROCESS * box.processes, 1),
        )
        for number, amount, unit in wanted:
            if amount is not None:
                grace = _LAST_SECONDS if number == resource.RLIMIT_CPU else 0
                yield number, amount * unit, amount * unit + grace
        yield resource.RLIMIT_CORE, 0, 0

    @property
    def holds(self) -> bool:
        return self.abi > 0

    def end(self, place: Place) -> None:
        pass

    def facts(self) -> dict[str, Any]:
        box = self.sandbox
        kind = "landlock" if self.abi else "limits" if resource else "none"
        return {
            "mode": box.mode,
            "in_force": kind,
            "abi": self.abi or None,
            "seccomp": bool(self.abi and filter_program()),
            "read": [str(path) for path in (*self.reach.whole, *self.reach.names)] if self.abi else None,
            "write": [str(path) for path in self.write] if self.abi else None,
            "limits": limits_of(box) if resource else None,
        }

    @property
    def title(self) -> str:
        return f"Landlock (version {self.abi}) and limits" if self.abi else "limits only" if resource else "none"

    def told(self) -> str:
        if not self.abi:
            limits = f"; {told_limits(self.sandbox)}" if resource else ""
            return f"{self.title}: it can read and write whatever you can{limits}"
        more = "".join(f", {path}" for path in self.write)
        return f"{self.title}: writes its trial's directory{more} and nothing else; {told_limits(self.sandbox)}"


def find_program(start: Start) -> Path:
    """The file that a command starts, as execvp(3) looks for it.

    Raises:
        FileNotFoundError: there is none.
    """
    command = start.argv[0]
    path = str(start.cwd / command) if os.sep in command else shutil.which(command, path=start.env.get("PATH"))
    if not path or not Path(path).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command)
    return Path(path)


def limits_of(box: Sandbox) -> dict[str, int | None]:
    return box.model_dump(include={"cpu_seconds", "memory_mb", "file_mb", "processes", "open_files"})


def told_limits(box: Sandbox) -> str:
    """Those that are set, in one line."""
    names = {
        "cpu_seconds": "s of CPU",
        "memory_mb": "MB of memory",
        "file_mb": "MB per file",
        "processes": "processes",
        "open_files": "open files",
    }
    said = [f"{amount} {names[key]}" for key, amount in limits_of(box).items() if amount is not None]
    return f"at most {', '.join(said)}" if said else "no limits"


def tasks_of_user() -> int:
    """How many processes and threads of this user run, which is what RLIMIT_NPROC counts."""
    if sys.platform != "linux":
        return 0
    count, mine = 0, os.getuid()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                found = Path(entry.path, "task").stat()
            except OSError:
                continue
            count += (found.st_nlink - 2) * (found.st_uid == mine)
    return count
