"""Small projects in a temporary folder: the server that misbehaves, a script in place of a model, one task."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from mcptrials.project import Project
from mcptrials.record import Record
from mcptrials.runner import run_async
from mcptrials.transcript import Transcript


@dataclass(frozen=True)
class Played:
    """One trial, as it stands in its run folder."""

    record: Record
    transcript: Transcript

    @property
    def verdict(self) -> tuple[str, str, str | None]:
        return self.record.verdict, self.record.blame, self.record.cause

    @property
    def shown(self) -> list[str]:
        """What the model saw of each answer."""
        return [made.answer.shown for made in self.transcript.calls if made.answer]

    @property
    def statuses(self) -> list[str]:
        return [made.answer.status for made in self.transcript.calls if made.answer]


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def calls(*asked: Mapping[str, Any]) -> dict[str, Any]:
    """A step that asks for these calls in one turn."""
    return {"calls": list(asked)}


def misbehave(fault: str, value: str = "") -> dict[str, Any]:
    return calls(call("misbehave", fault=fault, value=value))


DONE = {"answer": "done"}
"""The step that passes the task."""


def faulty(*faults: str, **keys: Any) -> dict[str, Any]:
    """A server of the project file."""
    spoiled = [word for fault in faults for word in ("--fault", fault)]
    args = ["-m", "mcptrials.servers.faulty", "--state", "{trial_dir}/memory.txt", *spoiled]
    return {"command": "{python}", "args": args, **keys}


def write_project(folder: Path, steps: Sequence[Mapping[str, Any]], **keys: Any) -> Project:
    """A project of one task and one trial; `keys` replace those of the project file.

    The task asks for the answer `done`; the script plays `steps`.
    """
    task = {"id": "task", "prompt": "Do it.", "graders": [{"type": "exact_answer", "expected": "done"}]}
    config = {"version": 1, "servers": {"faulty": faulty()}, "environment": {}, "models": ["scripted:script.json"]}
    config |= {"tasks": ["tasks.json"], "trials": 1, **keys}
    script = {"version": 1, "tasks": {"task": {"steps": steps}}}
    for name, value in (("mcptrials.yaml", config), ("tasks.json", [task]), ("script.json", script)):
        (folder / name).write_text(json.dumps(value), "utf-8")
    return Project.load(folder)


async def play(folder: Path, *steps: Mapping[str, Any], within_s: float = 30, **keys: Any) -> Played:
    """Runs the one trial of such a project."""
    project = write_project(folder, steps, **keys)
    with anyio.fail_after(within_s):
        run = (await run_async(project)).run
    (record,) = run.records()
    return Played(record, run.transcript(record))
