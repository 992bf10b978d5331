"""What servers and machines do in the middle of a run ends with the right side to blame, and touches nothing else."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import (
    COMMAND,
    SERVER,
    USAGE,
    Ended,
    adds,
    asks,
    environment,
    make_project,
    mcptrials,
    records,
    run_folder,
)

REPLACES_ITS_DIR = f"""
import os, sys
own, other = sys.argv[1:]
os.rename(own, own + "-away")
os.symlink(other, own)
exec(open({str(SERVER)!r}).read())
"""
LISTS_ONE_MORE = f"""
import os, sys
with open(sys.argv[1], "a") as starts:
    starts.write("x")
more = "TOOLS.append(" + sys.argv[2] + ")\\n" if os.path.getsize(sys.argv[1]) > 1 else ""
exec(open({str(SERVER)!r}).read().replace("SPELLINGS", more + "SPELLINGS", 1))
"""
FINE, BROKEN = "tool('more', 'string', 'x')", "{'name': 'broken'}"


def verdicts(run: Path) -> list[tuple[str, str, str | None]]:
    return [(record["verdict"], record["blame"], record["cause"]) for record in records(run)]


def test_a_folder_that_a_server_puts_in_the_place_of_its_own_is_neither_read_nor_removed(
    tmp_path: Path, commands: Preloaded
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "keep").write_text("theirs")
    reads = {"type": "state_check", "read": {"file": "{trial_dir}/keep"}, "expected": "theirs"}
    server = {"command": "{python}", "args": ["-c", REPLACES_ITS_DIR, "{trial_dir}", str(victim)], "sandbox": "off"}
    tasks = [asks("sums") | {"graders": [reads]}]
    folder = make_project(tmp_path / "p", tasks, {"sums": adds("5")}, servers={"tiny": server}, environment={})
    assert commands.run(folder, "run").code == 3
    assert verdicts(run_folder(folder)) == [("invalid", "grader", "grader_error")] * 2
    assert (victim / "keep").read_text() == "theirs"


def changing(folder: Path, more: str, **keys: Any) -> Path:
    """A project whose server lists one tool more from its second start on."""
    args = ["-c", LISTS_ONE_MORE, "{project_dir}/starts", more]
    server = {
        "command": "{python}",
        "args": args,
        "sandbox": {"read": [str(SERVER)], "write": ["{project_dir}"]},
        **keys,
    }
    return make_project(folder, [asks("sums")], {"sums": adds("5")}, servers={"tiny": server})


def test_a_server_that_is_another_in_a_trial_than_before_the_run_is_noted_and_warned_of(
    tmp_path: Path, commands: Preloaded
) -> None:  # C09
    folder = changing(tmp_path, FINE)
    result = commands.run(folder, "run", "--json")
    assert result.code == 0
    assert [record["server_faults"] for record in records(run_folder(folder))] == [["tools_changed"]] * 2
    warning = "2 trials met a server with another list of tools than the check before the run did"
    assert warning in result.document["warnings"]


@pytest.mark.parametrize(
    ("then", "verdict"),
    [("stop", ("failed", "server", "contract_violation")), ("drop", ("passed", "none", None))],
)
def test_a_tool_list_that_is_broken_in_a_trial_is_treated_as_before_the_run(
    tmp_path: Path, commands: Preloaded, then: str, verdict: tuple[str, str, str | None]
) -> None:
    folder = changing(tmp_path, BROKEN, on_invalid_tool=then)
    assert commands.run(folder, "run").code == 0
    assert verdicts(run_folder(folder)) == [verdict] * 2
    assert [record["server_faults"] for record in records(run_folder(folder))] == [["broken_tool_list"]] * 2


def test_tokens_of_a_trial_without_a_reply_are_not_known_and_cost_no_total(tmp_path: Path, commands: Preloaded) -> None:
    refused = {"steps": [{"error": {"status": 400}}]}
    tasks, script = [asks("sums"), asks("refused")], {"sums": adds("5"), "refused": refused}
    folder = make_project(tmp_path, tasks, script, trials=1)
    result = commands.run(folder, "run", "--json")
    tokens = {record["task_id"]: record["input_tokens"] for record in records(run_folder(folder))}
    assert tokens == {"sums": 2 * USAGE["input_tokens"], "refused": None}
    assert result.document["data"]["totals"]["input_tokens"] == 2 * USAGE["input_tokens"]


def test_directories_that_are_to_be_kept_are_named_by_trial_and_told_of(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    keeping = {"keep_trial_dirs": True, "environment": {"files": {"script.yaml": "{trial_dir}/fixture"}}}
    folder = make_project(tmp_path / "p", [asks("sums")], {"sums": adds("5")}, trials=2, **keeping)
    ran = mcptrials(folder, "run", TMPDIR=str(tmp_path / "tmp"))
    assert ran.code == 0
    [kept] = (tmp_path / "tmp").iterdir()
    found = records(run_folder(folder))
    assert {each["trial_dir"] for each in found} == {str(each) for each in kept.iterdir()}
    assert sorted(each.name[:7] for each in kept.iterdir()) == ["sums-1-", "sums-2-"]
    assert all((each / "fixture").is_file() for each in kept.iterdir())
    assert f"trialdirs:{kept}" in "".join(ran.out.split())  # it may be wrapped


def test_without_them_nothing_is_kept_and_the_record_says_so(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    folder = make_project(tmp_path / "p", [asks("sums")], {"sums": adds("5")}, trials=1)
    assert mcptrials(folder, "run", TMPDIR=str(tmp_path / "tmp")).code == 0
    assert [*(tmp_path / "tmp").iterdir()] == []
    assert [each["trial_dir"] for each in records(run_folder(folder))] == [None]


@pytest.fixture
def few_files(tmp_path: Path) -> Iterator[Path]:
    """A file system for 30 files."""
    folder = tmp_path / "few"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=30", "tmpfs", str(folder)]
    if os.name != "posix" or os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system, and not everywhere")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_temporary_directory_costs_trials_and_is_blamed_on_the_machine(tmp_path: Path, few_files: Path) -> None:
    script = {"sums": adds("5")}
    folder = make_project(tmp_path / "p", [asks("sums")], script, trials=15, keep_trial_dirs=True)
    result = mcptrials(folder, "run", TMPDIR=str(few_files))
    assert result.code == 3
    assert "Traceback" not in result.err
    found = set(verdicts(run_folder(folder)))
    assert found == {("passed", "none", None), ("invalid", "harness", "io")}
    assert len(records(run_folder(folder))) == 15


def limited(folder: Path, limit: str) -> Ended:
    command = ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *COMMAND, "run", "--json"]
    ran = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, encoding="utf-8", check=False, timeout=120
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def test_open_files_that_run_out_are_never_a_servers_fault(tmp_path: Path) -> None:
    folder = make_project(tmp_path, [asks("sums")], {"sums": adds("5")}, trials=30, concurrency=30)
    result = limited(folder, "-n 60")
    assert result.code == 3
    assert "Traceback" not in result.err
    assert {blame for _, blame, _ in verdicts(run_folder(folder))} <= {"none", "harness"}


def test_the_limit_on_open_files_is_raised_to_what_the_trials_need(tmp_path: Path) -> None:
    script = {"sums": adds("5", delay_ms=300)}
    folder = make_project(tmp_path, [asks("sums")], script, trials=12, concurrency=12)
    result = limited(folder, "-Sn 60")
    assert result.code == 0, result.err
    assert json.loads(result.out)["data"]["totals"]["passed"] == 12
