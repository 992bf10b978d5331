"""`mcptrials demo`, with the script instead of the local model."""

import json
from pathlib import Path

from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import records, run_folder


def test_the_demo_runs_the_example_from_any_folder_and_keeps_its_run_there(tmp_path: Path, commands: Preloaded) -> None:
    here = tmp_path / "it's: here #1"
    here.mkdir()
    words = ["--model", "scripted:script.yaml", "--only", "issue-version", "--trials", "1", "--set", "seed=5"]
    result = commands.run(here, "demo", "--json", *words)
    assert (result.code, result.err) == (0, "")
    assert result.document["command"] == "demo"
    run = run_folder(here)
    assert json.loads((run / "manifest.json").read_text())["seed"] == 5
    [record] = records(run)
    assert (record["task_id"], record["verdict"], record["tool_calls"]) == ("issue-version", "passed", 1)
    shown = commands.run(here, "show", f"runs/{run.name}", "--json")
    assert shown.document["data"]["totals"]["passed"] == 1


def test_without_the_local_model_the_demo_says_how_else_to_see_the_product(tmp_path: Path, commands: Preloaded) -> None:
    words = ["--set", "models=[local:no-such-model]"]
    result = commands.run(tmp_path, "demo", *words)
    assert result.code == 2
    assert result.err.endswith(
        "or see the product without a language model: mcptrials demo --model scripted:script.yaml\n"
    )
    assert len(result.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_demo_with_a_script_that_is_not_there_says_which_one_is(tmp_path: Path, commands: Preloaded) -> None:
    for model in ("scripted", "scripted:mine.yaml"):
        result = commands.run(tmp_path, "demo", "--model", model)
        assert result.code == 2
        assert result.err.endswith("the example's own is: mcptrials demo --model scripted:script.yaml\n")
        assert len(result.err.splitlines()) == 1
