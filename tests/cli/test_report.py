"""`mcptrials report`: from a run's folder to one file."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.cli.preloaded import Preloaded
from tests.cli.tiny_project import adds, asks, make_project
from tests.page.told import events_of, simple_records, told_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, commands: Preloaded) -> Path:
    """A run on the training tasks, another one like it, and one on held-out tasks."""
    tasks = [asks("plain"), asks("other")]
    folder = make_project(tmp_path_factory.mktemp("report"), tasks, {"plain": adds("5"), "other": adds("6")}, trials=1)
    assert commands.run(folder, "run", "--name", "one").code == 0
    shutil.copytree(folder / "runs" / "one", folder / "runs" / "two")
    manifest = folder / "runs" / "two" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"run_id":"one"', '"run_id":"two"'), "utf-8")
    told_run(folder / "runs" / "held", simple_records("s", split="held_out"), events_of("hush"), split="held_out")
    return folder


def looks(folder: Path) -> int:
    return (folder / "held_out_looks.jsonl").read_text().count('"report"')


def test_a_run_becomes_a_page_and_two_are_compared(folder: Path, commands: Preloaded) -> None:
    result = commands.run(folder, "report", "one")
    assert (result.code, result.out) == (0, "")
    assert "report.html: 0." in result.err
    page = (folder / "report.html").read_text("utf-8")
    assert "How much is 2 and 3?" in page
    assert str(folder) not in page
    result = commands.run(folder, "report", "one", "two", "-o", "two.md", "--json")
    assert "## two minus one" in (folder / "two.md").read_text("utf-8")
    data = result.document["data"]
    assert (data["file"], data["format"], len(data["summaries"])) == ("two.md", "markdown", 2)
    assert data["comparison"]["comparisons"][0]["verdict"] == "inconclusive"
    assert commands.run(folder, "report", "one", "--to", "markdown", "-o", "-").out.startswith("# base")


def test_every_form_of_a_report_shows_the_numbers_of_the_one_summary(folder: Path, commands: Preloaded) -> None:  # C76
    stored = json.loads((folder / "runs" / "one" / "summary.json").read_text("utf-8"))
    shown = commands.run(folder, "show", "one", "--json").document["data"]
    page = commands.run(folder, "report", "one", "-o", "-", "--to", "html").out
    [inside] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    markdown = commands.run(folder, "report", "one", "-o", "-", "--to", "markdown").out
    screen = commands.run(folder, "show", "one").out
    places = {"run_dir", "trial_dirs"}
    for each in (shown, json.loads(inside)["summaries"][0]):
        assert {key: each[key] for key in stored.keys() - places} == {
            key: stored[key] for key in stored.keys() - places
        }
    [arm] = stored["arms"]
    rate, interval = f"{100 * arm['rate']:.1f} %", f"[{100 * arm['ci_low']:.1f}, {100 * arm['ci_high']:.1f}]"
    for text in (page, markdown.replace("\\", ""), screen):
        assert rate in text
        assert interval in text


def test_held_out_words_need_to_be_asked_for_and_every_page_is_a_look(folder: Path, commands: Preloaded) -> None:
    assert commands.run(folder, "report", "held", "-o", "held.html").code == 0
    assert "hush" not in (folder / "held.html").read_text("utf-8")
    assert looks(folder) == 1
    assert commands.run(folder, "report", "held", "-o", "held.html", "--transcripts", "held_out").code == 0
    assert "hush" in (folder / "held.html").read_text("utf-8")
    assert looks(folder) == 2


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nothing"], "there is no run 'nothing'"),
        (["one", "one"], "one arm of one run is named twice"),
        (["one", "two", "held"], "a page holds one run or two, not 3"),
        (["one", "held", "--allow", "model"], "they have no task in common"),
        (["one", "-o", "page.pdf"], "its name tells no format"),
        (["one", "-o", "none/page.html"], "there is no such folder"),
        (["one", "-o", "folder.html"], "there is something that is no file"),
        (["one", "-o", "/dev/null", "--to", "html"], "there is something that is no file"),
        (["one", "-o", "-", "--json"], "cannot hold both"),
        (["one", "two", "--allow", "modle"], "there is no condition 'modle' to allow"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    folder: Path, commands: Preloaded, words: list[str], error: str
) -> None:
    (folder / "folder.html").mkdir(exist_ok=True)
    before = {*folder.iterdir(), folder / "held_out_looks.jsonl"}
    result = commands.run(folder, "report", *words)
    said = json.loads(result.out)["error"]["what"] if "--json" in words else result.err
    assert result.code == 2
    assert error in said
    assert result.err.count("\n") <= 1
    assert {*folder.iterdir()} <= before
