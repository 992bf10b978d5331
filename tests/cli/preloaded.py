"""The command line in processes that are forked from one which has imported everything.

For tests of many commands: only the time that imports take is missing.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.tiny_project import Ended, environment

FORKER = """
import gc, json, os, signal, sys
import mcptrials.cli.check, mcptrials.cli.power, mcptrials.cli.report, mcptrials.cli.run, mcptrials.cli.show
import mcptrials.hosts.loop, mcptrials.models.scripted
import mcptrials.graders.exact_answer, mcptrials.servers.session, mcptrials.servers.stdio, scipy.special
from mcptrials.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
gc.freeze()  # pages of memory that nobody touches are not copied
for line in sys.stdin:
    folder, output, words = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for descriptor, name in enumerate((os.devnull, output + ".out", output + ".err")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), descriptor)
        try:
            main(words)
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code)  # the objects of so many modules take long to destroy
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Forked:
    """A command that runs."""

    pid: int
    output: Path
    _forker: "subprocess.Popen[str]"

    @property
    def errors(self) -> str:
        """What it wrote to standard error so far."""
        return Path(f"{self.output}.err").read_text("utf-8")

    def ended(self) -> Ended:
        """Waits for its end."""
        assert self._forker.stdout is not None
        code = int(self._forker.stdout.readline())
        return Ended(code, *(Path(f"{self.output}.{end}").read_text("utf-8") for end in ("out", "err")))


@dataclass(frozen=True)
class Preloaded:
    """Starts one command at a time."""

    output: Path
    _forker: "subprocess.Popen[str]"

    def start(self, folder: Path, *words: str) -> Forked:
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        self._forker.stdin.write(json.dumps([str(folder), str(self.output), words]) + "\n")
        self._forker.stdin.flush()
        return Forked(int(self._forker.stdout.readline()), self.output, self._forker)

    def run(self, folder: Path, *words: str) -> Ended:
        return self.start(folder, *words).ended()


@contextmanager
def preloaded(folder: Path, **variables: str) -> Iterator[Preloaded]:
    """The forking process, until the block ends.

    Args:
        folder: for what the commands print.
        variables: of the environment.
    """
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", FORKER]
    with subprocess.Popen(
        command, env=environment(**variables), stdin=pipe, stdout=pipe, text=True, encoding="utf-8"
    ) as forker:
        try:
            yield Preloaded(folder / "output", forker)
        finally:
            forker.kill()
