"""What docs/quickstart.md says to save and run works as it stands."""

from pathlib import Path

import anyio
import pytest
from tests.quickstart import write_files

from mcptrials.project import Project
from mcptrials.runner import RunOptions, run_async


@pytest.mark.anyio
async def test_the_python_server_of_the_quickstart_is_evaluated(tmp_path: Path) -> None:
    write_files("My server is Python", tmp_path)
    options = RunOptions(trials=1)
    with anyio.fail_after(60):
        run = (await run_async(Project.load(tmp_path, settings=["seed=1"]), options)).run
    verdicts = {record.task_id: (record.verdict, record.cause, record.tool_errors) for record in run.records()}
    assert verdicts.pop("cancel-the-lamp") in [("passed", None, 0), ("failed", "wrong_state", 0)]  # as the script draws
    assert verdicts == {"cancel-what-was-shipped": ("passed", None, 0), "price-of-three": ("passed", None, 0)}
