"""The example evaluated with the real local model: what must hold whatever the model answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcptrials.store import Run

FOUR_TASKS = "label-by-key,issue-assignee,no-such-issue,sum-of-hours"


@pytest.mark.local_model
@pytest.mark.timeout(900)
def test_four_trials_of_the_example_are_scored_with_calls_tokens_and_transcripts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcptrials", "demo", "--trials", "1", "--only", FOUR_TASKS, "--json"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=850, check=False
    )
    document = json.loads(done.stdout)
    assert (done.returncode, document["error"]) == (0, None)
    assert document["data"]["totals"]["trials"] == 4
    assert document["data"]["totals"]["passed"] + document["data"]["totals"]["failed"] == 4
    run = Run.load(document["data"]["run_dir"])
    records = run.records()
    assert all(record.input_tokens and record.output_tokens for record in records)
    assert all((record.effective_model or "").startswith("qwen2.5-coder-1.5b") for record in records)
    calls = [made for record in records for made in run.transcript(record).calls]
    assert any(made.answer is not None and made.answer.status == "ok" for made in calls)
