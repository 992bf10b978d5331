"""A run over a mix of faults ends, judges each trial rightly, and leaves nothing behind."""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.projects import DONE, call, calls, faulty, misbehave

from mcptrials.project import Project
from mcptrials.runner import run_async

pytestmark = pytest.mark.anyio

PASSED, WRONG = ("passed", "none", None), {"answer": "undone"}

Case = tuple[list[dict[str, Any]], tuple[str, str, str | None], str | None]
"""What a task plays, how its trials end, and what they record of the server, besides what the variant brings."""


def fault(name: str, value: str, recorded: str | None) -> Case:
    """A fault of one call, after which the model goes on and is right."""
    return [misbehave(name, value), DONE], PASSED, recorded


CASES: Mapping[str, Case] = {
    "fine": ([calls(call("echo", text="hi")), DONE], PASSED, None),
    "noise": fault("noise", "", "stdout_not_json"),
    "duplicate": fault("duplicate", "", "duplicate_reply"),
    "early": fault("early", "", "reply_to_unknown_id"),
    "string-id": fault("string_id", "", "changed_id"),
    "no-version": fault("no_version", "", "malformed_message"),
    "bad-utf8": fault("bad_utf8", "", "invalid_utf8"),
    "surrogate": fault("surrogate", "", None),
    "control": fault("control", "", None),
    "nan": fault("nan", "", "number_not_json"),
    "deep": fault("deep", "100000", "stdout_not_json"),
    "flood": fault("flood", "1001", "flood"),
    "asks": fault("elicit", "", "undeclared_capability"),
    "asks-much": fault("ask_flood", "101", "flood"),
    "endless-input": fault("input_required", "", "endless_input"),
    "large": fault("huge", "1", None),
    "no-content": fault("no_content", "", "malformed_result"),
    "null-content": fault("null_content", "", "malformed_result"),
    "two-outcomes": fault("two_outcomes", "", "malformed_message"),
    "blocks": fault("many_blocks", "", None),
    "tool-error": fault("tool_error", "", None),
    "rpc-error": fault("rpc_error", "", None),
    "progress": fault("progress", "", None),
    "list-changed": fault("list_changed", "", None),
    "hang": fault("hang", "", "call_timeout"),
    "wrong-id": ([misbehave("wrong_id"), WRONG], ("failed", "server", "call_timeout"), "reply_to_unknown_id"),
    "crash": ([misbehave("crash", "3"), DONE], ("failed", "server", "crash"), "exit_code:3"),
    "unknown-tool": ([calls(call("drop_all")), DONE], PASSED, None),
    "unreadable": ([calls({"tool": "echo", "raw_arguments": "{"}), DONE], PASSED, None),
    "wrong": ([calls(call("echo", text="hi")), WRONG], ("failed", "agent", "wrong_answer"), None),
    "loops": ([calls(call("recall"))] * 5, ("failed", "agent", "limit:turns"), None),
    "refuses": ([{"stop": "refused"}], ("failed", "agent", "refused"), None),
    "provider": ([{"error": {"status": 400}}], ("invalid", "provider", "http"), None),
    "grader": ([DONE], ("invalid", "grader", "grader_error"), None),
}
VARIANTS: Mapping[str, list[str]] = {"quiet": [], "loud": ["banner", "grandchild"]}
BROUGHT = {"quiet": set(), "loud": {"stdout_not_json", "malformed_message", "left_processes"}}
TRIALS = 3


def write(folder: Path) -> Project:
    answers = {"type": "exact_answer", "expected": "done"}
    reads = {"type": "state_check", "read": {"command": ["false"]}, "expected": "1"}
    tasks = [{"id": name, "prompt": "Do it.", "graders": [reads if name == "grader" else answers]} for name in CASES]
    config = {
        "version": 1,
        "servers": {"faulty": faulty(era="modern")},
        "variants": {name: {"faulty": {"args": faulty(*faults)["args"]}} for name, faults in VARIANTS.items()},
        "environment": {},
        "models": ["scripted:script.json"],
        "limits": {"call_seconds": 2, "turns": 4},
        "tasks": ["tasks.json"],
        "trials": TRIALS,
        "concurrency": 8,
        "max_invalid": 1,
    }
    script = {"version": 1, "tasks": {name: {"steps": steps} for name, (steps, _, _) in CASES.items()}}
    for name, value in (("mcptrials.yaml", config), ("tasks.json", tasks), ("script.json", script)):
        (folder / name).write_text(json.dumps(value), "utf-8")
    return Project.load(folder)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def still_running(root: Path) -> list[str]:
    """Processes whose environment names a trial's directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(root).encode() in environment and process.name != str(os.getpid()):
            found.append(command.decode())
    return found


async def test_two_hundred_trials_over_a_mix_of_faults_end_each_with_the_right_verdict_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    project = write(tmp_path)
    descriptors = open_descriptors()
    with anyio.fail_after(120):
        run = (await run_async(project)).run
    records = run.records()
    assert len(records) == len(CASES) * len(VARIANTS) * TRIALS > 200
    ends = Counter((each.task_id, each.verdict, each.blame, each.cause) for each in records)
    assert ends == {(name, *end): len(VARIANTS) * TRIALS for name, (_, end, _) in CASES.items()}
    for each in records:
        recorded = CASES[each.task_id][2]
        assert {recorded} - {None} <= set(each.server_faults), each.task_id
        expected = BROUGHT[each.variant] | ({recorded} - {None}) | BESIDE.get(each.task_id, set())
        assert set(each.server_faults) <= expected, (each.task_id, each.server_faults)
    assert still_running(temporary) == []
    assert list(temporary.iterdir()) == []
    assert open_descriptors() <= descriptors


BESIDE = {
    "noise": {"malformed_message"},
    "wrong-id": {"call_timeout"},
    "crash": {"call_transport_lost"},
    "asks-much": {"undeclared_capability"},
}
"""What else such a fault is recorded as."""
