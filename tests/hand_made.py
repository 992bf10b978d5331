"""Runs that are written by hand, so that their numbers are known."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcptrials.record import Record
from mcptrials.store import Run
from mcptrials.task import Task
from mcptrials.trial import Arm, Verdict

BASE = Arm(variant="base", host="loop", model="scripted:s.yaml")
NEW = Arm(variant="new", host="loop", model="scripted:s.yaml")
HASH: dict[str, Any] = {"task_hash": "t", "environment_hash": "e"}


def task(task_id: str, **keys: Any) -> Task:
    return Task.model_validate({"id": task_id, "prompt": "?", "graders": [{"type": "exact_answer"}], **keys})


def manifest(tasks: Sequence[Task], arms: Sequence[Arm] = (BASE,), trials: int = 2, **keys: Any) -> dict[str, Any]:
    """What a run's beginning leaves, as far as readers need it."""
    values = {
        "schema_version": 1,
        "run_id": "by-hand",
        "split": "train",
        "seed": 0,
        "trials": trials,
        "max_invalid": 0.05,
        "use": None,
        "tasks": [each.model_dump(mode="json") for each in tasks],
        "arms": [{"id": arm.id, **arm.model_dump(mode="json")} for arm in arms],
    }
    return values | keys


def record(task_id: str, trial: int, verdict: Verdict = "passed", arm: Arm = BASE, **keys: Any) -> Record:
    """One attempt; `keys` replace fields."""
    values = {
        "task_id": task_id,
        "trial": trial,
        "arm": arm.id,
        "arm_label": arm.label,
        "variant": arm.variant,
        "model": arm.model,
        "agent_harness": "loop-1",
        "server_version": "1",
        "verdict": verdict,
        "passed": {"passed": True, "failed": False}.get(verdict),
        "graders": (),
        "tool_calls": 2,
        "tool_errors": 0,
        "protocol_errors": 0,
        "input_tokens": 100,
        "output_tokens": 10,
        "duration_ms": 1000.0,
        "reply_hash": f"{task_id} {trial} {arm.variant}",
        "transcript": f"transcripts/{task_id}-{trial}-{arm.id}-1.jsonl",
    }
    return Record.model_validate(values | keys)


def run_of(folder: Path, stated: dict[str, Any], records: Sequence[Record]) -> Run:
    """A run folder with these records, without transcripts."""
    (folder / "records").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(stated))
    (folder / "records" / "w1.jsonl").write_text("".join(each.model_dump_json() + "\n" for each in records))
    return Run.load(folder)


def side(
    folder: Path,
    passes: Mapping[str, Sequence[Any]],
    arm: Arm = BASE,
    tasks: Any = None,
    keys: Any = None,
    **stated: Any,
) -> Run:
    """A run of one arm: by task, 1, 0, or None for a trial that is not scored."""
    verdicts = {1: "passed", 0: "failed", None: "invalid"}
    records = [
        record(task_id, number, verdicts[passed], arm=arm, **(HASH | (keys or {})))  # type: ignore[arg-type]
        for task_id, values in passes.items()
        for number, passed in enumerate(values, 1)
    ]
    trials = max(map(len, passes.values()), default=1)
    stated = {"run_id": folder.name, **stated}
    return run_of(folder, manifest(tasks or [task(each) for each in passes], (arm,), trials or 1, **stated), records)


def only(document: dict[str, Any]) -> dict[str, Any]:
    [found] = document["comparisons"]
    return found  # type: ignore[no-any-return]
