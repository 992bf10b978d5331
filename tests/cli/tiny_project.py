"""A tiny project in a folder, and the real command line run in it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "mcptrials"]
SERVER = Path(__file__).with_name("tiny_server.py")
DEADLINE_S = 60.0
USAGE = {"input_tokens": 100, "output_tokens": 10}
COLOUR_OR_NOT = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE", "TERM", "COLUMNS")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The whole of standard output as one JSON document."""
        return json.loads(self.out)


def asks(task_id: str, expected: str = "5", **keys: Any) -> dict[str, Any]:
    """A task that an answer decides."""
    graders = [{"type": "exact_answer", "expected": expected}]
    reference = {"answer": expected}
    return {"id": task_id, "prompt": "How much is 2 and 3?", "graders": graders, "reference": reference, **keys}


def adds(answer: str, delay_ms: int = 0) -> dict[str, Any]:
    """A script that calls `add` once and then answers."""
    call = {"calls": [{"tool": "add", "args": {"a": 2, "b": 3}}], "delay_ms": delay_ms}
    return {"steps": [call | {"usage": USAGE}, {"answer": answer, "usage": USAGE}]}


def make_project(folder: Path, tasks: Sequence[Any], script: Mapping[str, Any], /, **keys: Any) -> Path:
    """Writes `mcptrials.yaml`, `tasks.yaml` and `script.yaml`; `keys` replace keys of the project."""
    project = {
        "version": 1,
        "servers": {"tiny": tiny_server()},
        "models": ["scripted:script.yaml"],
        "trials": 2,
        "tasks": ["tasks.yaml"],
    }
    folder.mkdir(exist_ok=True)
    for name, value in (("mcptrials", project | keys), ("tasks", tasks), ("script", {"tasks": script})):
        (folder / f"{name}.yaml").write_text(json.dumps(value))
    return folder


def tiny_server(*args: str, **env: str) -> dict[str, Any]:
    """The server of the project file, with more arguments and variables."""
    return {"command": "{python}", "args": [str(SERVER), *args], "env": env}


def environment(**variables: str) -> dict[str, str]:
    """This process's, with compiled bytecode allowed and nothing said about colours."""
    dropped = ("PYTHONDONTWRITEBYTECODE", *COLOUR_OR_NOT)
    return {name: value for name, value in os.environ.items() if name not in dropped} | variables


@contextmanager
def running(folder: Path, *words: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """`mcptrials WORDS` in a folder, killed when the block ends before it does."""
    pipe = subprocess.PIPE
    env, nothing = environment(**variables), subprocess.DEVNULL
    with subprocess.Popen(
        [*COMMAND, *words], cwd=folder, env=env, stdin=nothing, stdout=pipe, stderr=pipe, text=True, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=DEADLINE_S)
    return Ended(process.returncode, out, err)


def mcptrials(folder: Path, *words: str, **variables: str) -> Ended:
    """`mcptrials WORDS` in a folder, to its end."""
    with running(folder, *words, **variables) as process:
        return ended(process)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Polls for what another process does."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.005)


def run_folders(folder: Path) -> list[Path]:
    return sorted(folder.glob("runs/*"))


def run_folder(folder: Path) -> Path:
    [only] = run_folders(folder)
    return only


def records(run: Path) -> list[Any]:
    """The records of a run, as they stand in its files."""
    lines = [line for path in sorted(run.glob("records/*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]
