"""What docs/quickstart.md says to save and run works as it stands, and so does docs/python.md."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest
from tests.quickstart import BLOCK, PAGE, write_files

import mcptrials
from mcptrials.record import Record
from mcptrials.store import Run

PYTHON_PAGE = PAGE.with_name("python.md")


def test_the_python_server_of_the_quickstart_is_evaluated_by_the_script_of_the_python_page(tmp_path: Path) -> None:
    write_files("My server is Python", tmp_path)
    [(name, script)] = BLOCK.findall(PYTHON_PAGE.read_text("utf-8"))
    (tmp_path / name).write_text(script.replace("trials=3", "trials=1"), "utf-8")
    command = [sys.executable, name]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    records = Run.load(next((tmp_path / "runs").iterdir())).records()
    verdicts = {record.task_id: (record.verdict, record.cause, record.tool_errors) for record in records}
    rate = fmean(bool(record.passed) for record in records)
    arm, *failed, estimated = ended.stdout.splitlines()
    assert arm.endswith(f" {3 * rate:.0f} {3 - 3 * rate:.0f} {rate}")
    assert float(estimated.split()[0]) == pytest.approx(rate)
    lamp = verdicts.pop("cancel-the-lamp")  # as the script draws
    wrong = "cancel-the-lamp wrong_state ['cancel_order'] 12"
    assert (lamp, failed) in [(("passed", None, 0), []), (("failed", "wrong_state", 0), [wrong])]
    assert verdicts == {"cancel-what-was-shipped": ("passed", None, 0), "price-of-three": ("passed", None, 0)}


def test_the_python_page_names_every_public_name_and_every_field_of_a_record() -> None:
    text = re.sub("```.*?```", "", PYTHON_PAGE.read_text("utf-8"), flags=re.DOTALL)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert set(mcptrials.__all__) - {"__version__"} - named == set()
    assert Record.model_fields.keys() - named == set()
