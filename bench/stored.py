"""A stored run of many trials without running them, to measure what reads it."""

import hashlib
import json
from pathlib import Path

TASKS, ARM = 20, "0" * 8
PROJECT = {
    "version": 1,
    "servers": {"bench": {"command": "{python}"}},
    "environment": {"readers": {"labels of {key}": {"sql": "select label from labels where key = :key",
                                                    "url": "sqlite:///{trial_dir}/tracker.db"}}},
    "models": ["scripted:script.yaml"],
    "tasks": ["tasks.json"],
}  # fmt: skip


def write_stored(folder: Path, trials: int) -> None:
    """A project, and its run `stored` of so many trials with exact answers and checks of SQL state, as recorded."""
    tasks = [
        {
            "id": f"t{number}",
            "prompt": f"How many issues has team {number}?",
            "graders": _graders(number),
        }
        for number in range(TASKS)
    ]
    (folder / "mcptrials.json").write_text(json.dumps(PROJECT))
    (folder / "tasks.json").write_text(json.dumps(tasks))
    run = folder / "runs" / "stored"
    (run / "records").mkdir(parents=True)
    specs = [
        [{"type": each["type"], "settings": {key: each[key] for key in each if key != "type"}} for each in graders]
        for graders in map(_graders, range(TASKS))
    ]
    manifest = {
        "schema_version": 1, "run_id": "stored", "split": "train", "seed": 0, "trials": trials // TASKS,
        "max_invalid": 0.05, "use": None,
        "tasks": [task | {"graders": spec} for task, spec in zip(tasks, specs, strict=True)],
        "arms": [{"id": ARM, "variant": "base", "host": "loop", "model": "scripted:script.yaml"}],
    }  # fmt: skip
    (run / "manifest.json").write_text(json.dumps(manifest))
    lines = [json.dumps(_record(task, trial)) for trial in range(1, trials // TASKS + 1) for task in range(TASKS)]
    (run / "records" / "w1.jsonl").write_text("\n".join(lines) + "\n")


def _graders(number: int) -> list[dict[str, str]]:
    return [
        {"type": "exact_answer", "expected": str(1000 + number)},
        {"type": "state_check", "query": f"labels of BILL-{number}", "expected_contains": "blocked"},
    ]


def _record(task: int, trial: int) -> dict[str, object]:
    answer = f"{1000 + task}" if trial % 3 else "I found 7 issues"
    return {
        "task_id": f"t{task}", "trial": trial, "arm": ARM, "arm_label": "base", "variant": "base",
        "model": "scripted:script.yaml", "agent_harness": "loop-1", "server_version": "1",
        "passed": False, "verdict": "failed", "cause": "wrong_answer", "blame": "agent",
        "graders": [{"type": "exact_answer", "name": "exact_answer", "passed": False, "reason": "wrong"}],
        "tool_calls": 2, "tool_errors": 0, "protocol_errors": 0, "input_tokens": 900, "output_tokens": 80,
        "duration_ms": 2000.0, "transcript": f"transcripts/t{task}-{trial}.jsonl", "stop": "answer",
        "answer": answer, "framing": "tagged", "tool_sequence": ["search", "get"],
        "state": {f"labels of BILL-{task}": {"value": ["blocked", "urgent"], "error": None}},
        "reply_hash": hashlib.sha256(f"{task} {trial}".encode()).hexdigest()[:16],
    }  # fmt: skip
