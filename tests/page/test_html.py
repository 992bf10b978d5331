"""The page in HTML: self-contained, honest, and harmless whatever it shows."""

import base64
import hashlib
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.proportion import proportion_confint
from tests.hand_made import BASE, NEW, record
from tests.page.told import HOSTILE, events_of, page_of, simple_records, tell, told_run

from mcptrials.comparison import Question, sides_of
from mcptrials.page import contents_of, html_page
from mcptrials.page.transcripts import BUDGET_BYTES, LIMITS
from mcptrials.report import summarise
from mcptrials.store import Run
from mcptrials.trial import Arm

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800]")


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "input"):
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._within.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._within:
            self.texts.setdefault(self._within[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self) -> Any:
        return json.loads(self.texts["script"][0])


def test_hostile_text_is_text_everywhere(tmp_path: Path) -> None:
    records = simple_records("ab", error=HOSTILE, cause=HOSTILE, tool_sequence=(HOSTILE,))
    keys = {"versions": {"x": HOSTILE}, "limits": {HOSTILE: HOSTILE}, "created_at": HOSTILE}
    preflight = {"base": {HOSTILE: {"name": HOSTILE, "version": HOSTILE, "tools": [{"name": HOSTILE}]}}}
    run = told_run(
        tmp_path / "run", records, events_of(HOSTILE, HOSTILE, HOSTILE, HOSTILE), preflight=preflight, **keys
    )
    text = html_page(page_of(run))
    page = Page(text)
    assert not OBEYED.search(text)
    assert not {"img", "iframe", "link", "object"} & {name for name, _ in page.elements}
    assert [attributes.get("type") for attributes in page.all("script")] == ["application/json", None]
    assert len(page.all("style")) == 1
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert all((each["href"] or "").startswith("#") for each in page.all("a"))
    shown = HOSTILE.split("\x1b")[0]
    assert sum(text.count(shown) for text in page.texts["pre"]) >= 4 * 5  # result, prompt, words, reasoning, answer


def test_the_policy_allows_this_style_and_script_alone(tmp_path: Path) -> None:
    page = Page(html_page(page_of(told_run(tmp_path / "run", simple_records(), events_of()))))
    [policy] = [each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    for directive, text in (("style-src", page.texts["style"][0]), ("script-src", page.texts["script"][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in (policy or "")
    assert "default-src 'none'" in (policy or "")
    assert "url(" not in page.texts["style"][0]
    assert not [each for _, each in page.elements if {"style", "src", "srcset"} & each.keys()]


def test_the_data_of_the_page_are_the_summary_without_places_of_this_machine(tmp_path: Path) -> None:
    run = told_run(tmp_path / "run", simple_records(trial_dir=str(tmp_path / "kept" / "x")), events_of(HOSTILE))
    text = html_page(page_of(run))
    data = Page(text).data
    assert data["summaries"] == [json.loads(json.dumps({**summarise(run), "run_dir": "run", "trial_dirs": []}))]
    assert [(each["task_id"], each["verdict"]) for each in data["trials"][:3]] == [
        ("a", "passed"), ("a", "passed"), ("b", "failed")
    ]  # fmt: skip
    assert str(tmp_path) not in text


def test_a_task_stands_at_its_rate_with_wilsons_interval(tmp_path: Path) -> None:
    records = [record("a", number, "passed" if number < 4 else "failed") for number in range(1, 6)]
    page = Page(html_page(page_of(told_run(tmp_path / "run", records, events_of(), trials=5))))
    low, high = proportion_confint(3, 5, method="wilson")
    lines = [each for each in page.all("line") if "whisker" in (each["class"] or "")]
    assert (lines[-1]["x1"], lines[-1]["x2"]) == (f"{100 * low:.2f}%", f"{100 * high:.2f}%")
    assert "60.00%" in [each["cx"] for each in page.all("circle")]


def test_arms_of_one_run_are_compared_and_each_flip_links_to_its_transcripts(tmp_path: Path) -> None:
    records = [
        *(record(each, number, "failed") for each in "abcdefgh" for number in (1, 2)),
        *(record(each, number, arm=NEW) for each in "abcdefgh" for number in (1, 2)),
    ]
    text = html_page(page_of(told_run(tmp_path / "run", records, events_of(), arms=(BASE, NEW))))
    page = Page(text)
    assert page.texts["title"] == ["new is better than base on tasks like these: +100.0 points [+37.5, +100.0]."]
    anchors = {each["id"] for each in page.all("details") if each.get("id")}
    links = {(each["href"] or "")[1:] for each in page.all("a")}
    assert {f"{each}-1-{arm.id}" for each in "abcdefgh" for arm in (BASE, NEW)} <= links & anchors
    assert links <= anchors | {each["id"] for each in page.all("section")}


LOST = ("sum", "x" * 500)


def test_what_is_not_scored_and_what_is_called_first_stand_beside_a_difference(tmp_path: Path) -> None:
    records = [
        *(record(each, 1, tool_sequence=("add",)) for each in "abcd"),
        *(
            record(each, 1, arm=NEW, tool_sequence=("sum", "x" * 500), unknown_tools=1, unknown_at=(1,))
            for each in "ab"
        ),
        record("c", 1, arm=NEW, tool_sequence=("sum",), argument_errors=2),
        record("d", 1, "invalid", arm=NEW, cause="http", blame="provider"),
    ]
    page = Page(html_page(page_of(told_run(tmp_path / "run", records, events_of(), arms=(BASE, NEW), trials=1))))
    assert "With what is not scored against the second, or for it: -25.0 to +0.0." in page.texts["p"]
    assert "First calls: add 100.0 % → 0.0 %, sum 0.0 % → 100.0 %." in page.texts["p"]
    named = f"{'x' * 80}[...] in 0 → 2"
    assert f"Calls of tools that are not there: 0.0 % → 66.7 % of trials: {named}." in page.texts["p"]
    assert "Calls whose arguments do not fit the schema: 0.0 % → 33.3 % of trials." in page.texts["p"]


def test_two_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [
        told_run(tmp_path / place / "nightly", simple_records(tasks), events_of(), trials=2)
        for place, tasks in (("old", "abcdef"), ("new", "bacdef"))
    ]
    sides = [side for run in runs for side in sides_of(run)]
    contents = contents_of(runs, sides, (), (Question(), "train"))
    text = html_page(contents)
    assert "nightly (2) minus" in re.sub("</?bdi>", "", text)
    assert [each["run_id"] for each in contents.data["summaries"]] == ["nightly", "nightly (2)"]
    anchors = re.findall('<details class="trial" id="([^"]+)"', text)
    assert len(set(anchors)) == len(anchors) == 24
    assert set(re.findall(r'href="#([abcdef]-[^"]+)"', text)) <= set(anchors)


def test_one_run_named_in_two_ways_is_one_run(tmp_path: Path) -> None:
    records = [*simple_records(), *simple_records("abcdef"[::-1], arm=NEW)]
    run = told_run(tmp_path / "run", records, events_of(), arms=(BASE, NEW))
    sides = [*sides_of(run, "base"), *sides_of(Run.load(tmp_path / ".." / tmp_path.name / "run"), "new")]
    contents = contents_of([run], sides, (), (Question(), "train"))
    assert set(contents.reading.anchors) >= {
        path for row in contents.data["comparison"]["comparisons"][0]["changed_tasks"]
        for path in row["transcripts"].values()
    }  # fmt: skip


def test_arms_that_cannot_be_compared_are_shown_with_the_reason(tmp_path: Path) -> None:
    other = Arm(variant="base", host="loop", model="scripted:other.yaml")
    records = [*simple_records("ab"), *simple_records("ab", arm=other)]
    contents = page_of(told_run(tmp_path / "run", records, events_of(), arms=(BASE, other)))
    assert contents.data["comparison"] is None
    [reason] = contents.data["not_compared"]
    assert "model differs" in reason
    assert reason.split("is not compared")[0] in html_page(contents)


def test_a_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    run = told_run(tmp_path / "run", simple_records("ab"), events_of(result='{"x":"<é>"}' * 200_000))
    text = html_page(page_of(run))
    assert f"the first {LIMITS[0]:,} of 2,200,000 characters" in text
    assert len(text) < 1_000_000


def test_of_a_very_long_trial_the_beginning_and_the_end_are_shown(tmp_path: Path) -> None:
    run = told_run(tmp_path / "run", simple_records("a"), [*events_of("first"), *events_of() * 400, *events_of("last")])
    text = html_page(page_of(run))
    assert "2,216 more steps are left out here" in text  # 8 blocks of each of 402 rounds, and room for 1,000
    assert text.count("<pre>first</pre>") == text.count("<pre>last</pre>") > 2


def test_what_a_model_makes_up_cannot_make_the_page_long(tmp_path: Path) -> None:
    call = next(event for event in events_of() if event.kind == "tool_call")
    calls = [call.model_copy(update={"call_id": str(n), "tool": f"{n}{'x' * 5_000}"}) for n in range(300)]
    run = told_run(tmp_path / "run", simple_records("a"), calls)
    page = Page(html_page(page_of(run, shown="none")))
    cells = [text for text in page.texts["bdi"] if text.endswith("x[...]")]
    assert len(cells) == 50
    assert max(map(len, cells)) < 1_100
    assert "250 more are in the data." in page.texts["p"]


def test_a_page_of_600_trials_is_made_in_5_seconds_and_takes_3_megabytes(tmp_path: Path) -> None:
    names = [f"t{index}" for index in range(60)]
    records = [record(each, n, "failed" if n % 3 else "passed") for each in names for n in range(1, 11)]
    run = told_run(tmp_path / "run", records, events_of("words " * 100, '{"key": "<value>"}\n' * 500), trials=10)
    begin = time.process_time()
    contents = page_of(run)
    text = html_page(contents)
    assert time.process_time() - begin < 5
    assert BUDGET_BYTES < len(text.encode()) < 3_000_000
    told = contents.reading.told
    assert 0 < len(told) < 600
    assert {each.record.verdict for each in told} == {"failed"}
    assert contents.reading.left_out == 600 - len(told)
    assert f"{600 - len(told)} transcripts left out" in text


def test_every_transcript_of_a_small_run_is_on_the_page_and_one_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    records = simple_records()
    run = told_run(tmp_path / "run", records, events_of())
    assert len(page_of(run).reading.told) == len(records)
    (run.folder / records[0].transcript).write_text("no event\n")
    (run.folder / records[1].transcript).unlink()
    contents = page_of(run)
    assert (len(contents.reading.told), contents.reading.unreadable) == (len(records) - 2, 2)
    assert "2 transcripts cannot be read" in html_page(contents)


@pytest.mark.parametrize("verdict", ["invalid", "pending"])
def test_of_nothing_scored_there_is_no_rate(tmp_path: Path, verdict: Any) -> None:
    records = [record(each, 1, verdict, cause="http", blame="provider") for each in "ab"]
    text = html_page(page_of(told_run(tmp_path / "run", records, events_of(), trials=1)))
    page = Page(text)
    assert "0 of 2 trials are scored" in page.texts["title"][0]
    assert not [text for name in ("b", "td", "bdi") for text in page.texts[name] if re.search(r"\d %", text)]


def test_what_a_manifest_says_out_of_shape_is_left_out(tmp_path: Path) -> None:
    run = told_run(tmp_path / "run", simple_records("b"), events_of())
    odd = Run(run.folder, run.manifest | {"versions": "x", "limits": [1], "preflight": 7, "servers": "x"})
    assert "at this one task" in html_page(page_of(odd))


def test_an_empty_run_and_one_with_a_single_task_have_a_page(tmp_path: Path) -> None:
    empty = told_run(tmp_path / "none", [], [])
    assert "Nothing can be said" in html_page(page_of(empty))
    single = told_run(tmp_path / "single", simple_records("b"), events_of())
    assert "at this one task" in html_page(page_of(single))
    assert "too few tasks for inference" in html_page(page_of(single))


@pytest.mark.parametrize(("shown", "seen"), [("train", False), ("none", False), ("held_out", True)])
def test_held_out_words_are_on_the_page_only_when_asked_for(tmp_path: Path, shown: Any, seen: bool) -> None:
    records = [
        *(record(each, 1, "failed", tool_errors=1, answer="hush") for each in "abcdef"),
        *(record(each, 1, arm=NEW, tool_errors=1, answer="hush") for each in "abcdef"),
    ]
    failed = [event.model_copy(update={"status": "tool_error"}) if event.kind == "tool_result" else event
              for event in events_of("hush", "hush", "hush")]  # fmt: skip
    run = told_run(tmp_path / "run", records, events_of(), split="held_out", arms=(BASE, NEW), trials=1)
    for each in records[:6]:
        tell(run, each, failed)
    text = html_page(page_of(run, shown=shown))
    assert ("hush" in text) is seen
    assert "held-out tasks; this look at them is logged" in text
