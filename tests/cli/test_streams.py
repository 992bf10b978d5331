"""Standard streams that are closed or full cost no result and no exit code that means something else."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.cli.tiny_project import COMMAND, Ended, adds, asks, environment, make_project, run_folder

STILL = "what was recorded is kept; send the output elsewhere"
CLOSED = f"error: standard output: cannot be written: Bad file descriptor; {STILL}"
FULL = f"error: standard output: cannot be written: No space left on device; {STILL}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a run."""
    folder = make_project(tmp_path_factory.mktemp("streams"), [asks("sums")], {"sums": adds("5")}, trials=1)
    assert redirected(folder, "run --quiet --name one", "").code == 0
    return folder


def redirected(folder: Path, words: str, redirections: str) -> Ended:
    """A command whose streams a shell has redirected."""
    script = f'exec "$@" {words} {redirections}'
    command = ["bash", "-c", script, "bash", *COMMAND]
    ran = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("redirections", "code"),
    [("<&-", 0), ("2>&-", 0), ("2>/dev/full", 0), (">&-", 3), (">/dev/full", 3), ("<&- >&- 2>&-", 3)],
)
def test_a_run_is_recorded_and_summed_up_whatever_streams_it_has(tmp_path: Path, redirections: str, code: int) -> None:
    folder = make_project(tmp_path, [asks("sums")], {"sums": adds("5")}, trials=1)
    result = redirected(folder, "run", redirections)
    assert result.code == code, result
    assert "Traceback" not in result.err
    summary = json.loads((run_folder(folder) / "summary.json").read_bytes())
    assert (summary["complete"], summary["totals"]["passed"]) == (True, 1)
    last = {">&-": CLOSED, ">/dev/full": FULL}.get(redirections)
    assert last is None or result.err.splitlines()[-1] == last


@pytest.mark.parametrize("words", ["show one", "show one --json", "--help", "--version"])
def test_what_could_not_be_printed_is_one_line_on_the_other_stream(shown: Path, words: str) -> None:
    assert redirected(shown, words, ">/dev/full") == Ended(3, "", FULL + "\n")


def test_an_error_that_standard_error_does_not_take_goes_to_standard_output(shown: Path) -> None:
    for redirections in ("2>&-", "2>/dev/full"):
        result = redirected(shown, "show two", redirections)
        assert (result.code, result.err) == (2, "")
        assert "there is no run 'two'" in result.out
    document = redirected(shown, "show two --json", "2>&-")
    assert (document.code, document.document["error"]["what"]) == (2, "there is no run 'two'")


def test_a_usage_error_stays_one_when_nothing_can_be_printed(shown: Path) -> None:
    assert redirected(shown, "show two --json", ">/dev/full 2>/dev/full").code == 2
