"""`mcptrials try` and `mcptrials compare` on the command line: from an edited description to a verdict."""

import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import asks, make_project, records, run_folder, run_folders, wait_until
from tests.hand_made import manifest, record, run_of, task

SHOP = """
import sys

from mcp.server import MCPServer


def shop(description="Poor."):
    server = MCPServer("shop")

    @server.tool(description=description, annotations={"readOnlyHint": True})
    def search(text: str) -> str:
        return f"found {text}"

    return server


if __name__ == "__main__":
    shop(sys.argv[1]).run()
"""

READER = """
from mcptrials.models.scripted import Scripted, ScriptedCall, Step, _reply


class Reader(Scripted):
    "Succeeds where the description is good, and else on task `easy` alone."

    def __init__(self, *, project_dir):
        super().__init__("script.yaml", project_dir=project_dir)

    async def request(self, messages, tools, settings, trial):
        await super().request(messages, tools, settings, trial)
        if not any(type(each).__name__ == "ToolOutput" for each in messages):
            return _reply(Step(calls=(ScriptedCall(tool=tools[0].shown_name, args={"text": "x"}),)), 0)
        good = "Good" in (tools[0].description or "") or trial.task_id == "easy"
        return _reply(Step(answer="5" if good else "4"), 1)
"""


def shop_project(folder: Path, n_tasks: int = 8, delay_ms: int = 0, **keys: Any) -> Path:
    tasks = [asks("easy"), *(asks(f"t{i}") for i in range(n_tasks - 1)), asks("secret", split="held_out")]
    step = {"text": "x", "delay_ms": delay_ms}
    script = {each["id"]: {"steps": [step, step]} for each in tasks}
    keys = {"servers": {"shop": {"python": "./shop.py:shop"}}, "models": ["./reader.py:Reader"], **keys}
    make_project(folder, tasks, script, **keys)
    (folder / "shop.py").write_text(SHOP)
    (folder / "reader.py").write_text(READER)
    return folder


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, commands: Preloaded) -> Any:
    folder = shop_project(tmp_path_factory.mktemp("try"), trials=2)
    (folder / "overrides.yaml").write_text("tools: {search: {description: Good., name: find}}")
    return folder, commands.run(folder, "try")


def test_an_edited_description_gets_its_verdict(tried: Any) -> None:
    folder, ended = tried
    assert ended.code == 0
    assert "8 tasks x 2 trials detect " in ended.err
    assert "block 1 of 2: 12.5 % -> 100.0 %, +87.5 points" in ended.err
    assert "changed minus base" in ended.out
    assert "BETTER: " in ended.out
    assert "improved: t0 0/2 -> 2/2" in ended.out
    assert 'tools: shop/search $.description: "Poor." -> "Good."' in ended.out
    assert "next: keep the change" in ended.out
    assert f"A {run_folder(folder).relative_to(folder)}/transcripts/t0-" in ended.out
    assert {each["task_id"] for each in records(run_folder(folder))}.isdisjoint({"secret"})


def test_both_arms_are_run_anew_in_balanced_blocks(tried: Any) -> None:
    folder, _ = tried
    found = records(run_folder(folder))
    assert {(each["variant"], each["block"]) for each in found} == {(v, b) for v in ("base", "changed") for b in (1, 2)}
    assert len(found) == 2 * 8 * 2
    assert {each["tool_sequence"][0] for each in found} == {"search"}


def test_the_run_can_be_compared_again(tried: Any, commands: Preloaded) -> None:
    folder, _ = tried
    name = run_folder(folder).name
    ended = commands.run(folder, "compare", f"{name}:changed", f"{name}:base", "--json")
    document = ended.document
    assert (ended.code, document["ok"], ended.err) == (0, True, "")
    [found] = document["data"]["comparisons"]
    assert (found["verdict"], found["difference"]) == ("worse", -0.875)
    fixed = commands.run(folder, "compare", name, "--scope", "these-tasks")
    assert "INCONCLUSIVE: trials repeat each other" in fixed.out
    one = commands.run(folder, "compare", name)
    assert one.code == 0
    assert "BETTER" in one.out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("compare nothing", "there is no run 'nothing'"),
        ("compare RUN:bse RUN:changed", "has no arm 'bse'; did you mean 'base'?"),
        ("compare RUN --allow modle", "there is no condition 'modle' to allow; did you mean 'model'?"),
        ("compare RUN --margin 5", "the margin 5 is no share"),
        ("compare RUN:base", "there is nothing to compare it with"),
        ("compare", "A [B ...]"),
        ("try --overrides none.yaml", "none.yaml: the file does not exist"),
        ("try --base bse", "has no variant 'bse'; did you mean 'base'?"),
        ("try --server ''", "is no command"),
        ("try --server 'a \"b'", "write it as in a shell"),
        ("try --set models=[scripted:script.yaml,./reader.py:Reader]", "the project has 2 models"),
        ("try --set variants.base=none", "variant 'base' has no server to change"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_line(tried: Any, commands: Preloaded, words: str, line: str) -> None:
    folder, _ = tried
    ended = commands.run(folder, *(word.replace("RUN", run_folder(folder).name) for word in shlex.split(words)))
    assert (ended.code, ended.out) == (2, "")
    assert line in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert len(run_folders(folder)) == 1


def test_there_is_nothing_to_try_without_a_change(tmp_path: Path, commands: Preloaded) -> None:
    folder = shop_project(tmp_path / "p")
    assert "no overrides.yaml stands beside mcptrials.yaml" in commands.run(folder, "try").err
    (folder / "overrides.yaml").write_text("tools: {}")
    ended = commands.run(folder, "try", "--json")
    assert ended.code == 2
    assert "nothing differs from variant 'base'" in ended.document["error"]["what"]


def test_a_change_that_changes_nothing_is_inconclusive(tmp_path: Path, commands: Preloaded) -> None:
    folder = shop_project(tmp_path / "p", trials=1)
    (folder / "overrides.yaml").write_text("tools: {search: {description: Poorer.}}")
    ended = commands.run(folder, "try", "--json", "--only", "easy,t0")
    data = ended.document["data"]
    assert (ended.code, ended.err, data["complete"]) == (0, "", True)
    assert data["comparisons"][0]["verdict"] == "inconclusive"
    assert data["comparisons"][0]["difference"] == 0


@pytest.mark.parametrize(
    ("passes", "margin", "verdict"),
    [
        ({"a": [0, 0], "b": [1, 1]}, None, "better"),
        ({"a": [1, 1], "b": [0, 0]}, None, "worse"),
        ({"a": [1, 0], "b": [1, 0]}, 0.05, "inconclusive"),
        ({"a": [1, 0], "b": [1, 0]}, 0.5, "equivalent"),
    ],
)
def test_every_verdict_is_a_word_and_no_error(  # C69
    tmp_path: Path, commands: Preloaded, passes: Any, margin: float | None, verdict: str
) -> None:
    """An interval that overlaps the margin is inconclusive; only what could not be done ends with another code."""
    hashes: dict[str, Any] = {"task_hash": "t", "environment_hash": "e"}
    for name, values in passes.items():
        trials = [
            record(f"t{i}", number, "passed" if value else "failed", **hashes)
            for i in range(8)
            for number, value in enumerate(values, 1)
        ]
        run_of(tmp_path / "runs" / name, manifest([task(f"t{i}") for i in range(8)], run_id=name), trials)
    words = ["compare", "runs/a", "runs/b", *(["--margin", str(margin)] if margin else [])]
    ended = commands.run(tmp_path, *words, "--json")
    assert (ended.code, ended.document["ok"], ended.err) == (0, True, "")
    [found] = ended.document["data"]["comparisons"]
    assert found["verdict"] == verdict
    screen = commands.run(tmp_path, *words)
    assert screen.code == 0
    assert verdict.upper() in screen.out
    shown = re.search(r"difference +([+-]\d+\.\d) \[([+-]\d+\.\d), ([+-]\d+\.\d)\]", screen.out)
    assert shown is not None
    assert shown.groups() == tuple(f"{100 * found[key]:+.1f}" for key in ("difference", "ci_low", "ci_high"))


DOWN = """
from mcptrials.errors import ProviderError

Before = Reader


class Reader(Before):
    "Whose provider is down whenever the changed description is to be read."

    async def request(self, messages, tools, settings, trial):
        if "Good" in tools[0].description and trial.task_id not in KEPT:
            raise ProviderError("http", "503 Service Unavailable", status=503, retryable=False)
        return await super().request(messages, tools, settings, trial)
"""


@pytest.mark.parametrize("kept", [(), ("easy", "t0", "t1", "t2")])
def test_a_provider_that_is_down_makes_no_arm_worse(  # C70
    tmp_path: Path, commands: Preloaded, kept: tuple[str, ...]
) -> None:
    folder = shop_project(tmp_path / "p", trials=2)
    (folder / "reader.py").write_text(f"{READER}\nKEPT = {kept!r}\n{DOWN}")
    (folder / "overrides.yaml").write_text("tools: {search: {description: Good.}}")
    ended = commands.run(folder, "try", "--json")
    [found] = ended.document["data"]["comparisons"]
    assert (ended.code, found["verdict"]) == (3, "inconclusive")
    assert found["a"]["not_scored"] == 0
    assert found["b"]["not_scored"] == 2 * (8 - len(kept))
    assert found["b"]["failed"] == 0
    assert found["b"]["rate"] == (1.0 if kept else None)
    assert {each["verdict"] for each in records(run_folder(folder)) if each["blame"] == "provider"} == {"invalid"}


def test_a_stopped_try_keeps_everything_and_goes_on(tmp_path: Path, commands: Preloaded) -> None:
    folder = shop_project(tmp_path / "p", n_tasks=2, delay_ms=100, concurrency=1, trials=2)
    (folder / "overrides.yaml").write_text("tools: {search: {description: Good.}}")
    running = commands.start(folder, "try")
    wait_until(lambda: "[2/8]" in running.errors, "two trials are done")
    os.kill(running.pid, signal.SIGINT)
    ended = running.ended()
    assert ended.code == 3
    name = run_folder(folder)
    assert f"go on with: mcptrials try --resume {name.relative_to(folder)}" in ended.err
    kept = len(records(name))
    (folder / "overrides.yaml").write_text("tools: {search: {description: Better.}}")
    assert "the run began with other arms" in commands.run(folder, "try", "--resume", name.name).err
    (folder / "overrides.yaml").write_text("tools: {search: {description: Good.}}")
    again = commands.run(folder, "try", "--resume", name.name)
    assert again.code == 0
    assert "block 2 of 2" in again.err
    assert 2 <= kept < len(records(name)) == 8


def test_held_out_tasks_that_are_compared_are_looks(tmp_path: Path, commands: Preloaded) -> None:
    folder = shop_project(tmp_path / "p", trials=1)
    for name in ("one", "two"):
        assert commands.run(folder, "run", "--split", "held_out", "--name", name).code == 0
    assert commands.run(folder, "compare", "one", "two").code == 0
    [ledger] = [path for path in folder.rglob("*") if path.is_file() and "look" in path.name]
    looks = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [each for each in looks if "compare" in each.values()]


def test_a_changed_server_is_tried_by_its_command(tmp_path: Path, commands: Preloaded) -> None:
    folder = shop_project(tmp_path / "p", trials=1)
    command = "shop={python} {project_dir}/shop.py Good."
    ended = commands.run(folder, "try", "--server", command, "--only", "easy,t0", "--json")
    assert ended.code == 0
    [found] = ended.document["data"]["comparisons"]
    assert (found["a"]["rate"], found["b"]["rate"]) == (0.5, 1.0)
    assert [each["after"] for each in found["tools"]["changes"] if each["path"] == "$.description"] == ["Good."]


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ("{search: {description: Good.}}", 0, "overrides 1 tool of variant told"),
        ("{serch: {description: x}}", 1, "has a tool 'serch'"),
    ],
)
def test_a_check_looks_at_overrides_too(tmp_path: Path, commands: Preloaded, told: str, code: int, said: str) -> None:
    folder = shop_project(tmp_path / "p", 1, variants={"base": {}, "told": {"overrides": "overrides.yaml"}})
    (folder / "overrides.yaml").write_text(f"tools: {told}")
    ended = commands.run(folder, "check", "--offline", "--json")
    lines = [line for line in ended.document["data"]["lines"] if "overrides.yaml" in line["subject"]]
    assert [said in line["what"] for line in lines] == [True]
    assert ended.code == code
