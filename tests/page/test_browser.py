"""The page in a real browser."""

import re
from pathlib import Path

import pytest
from tests.hand_made import BASE, NEW, record
from tests.page.browser import browse
from tests.page.told import HOSTILE, events_of, page_of, tell, told_run

from mcptrials.page import html_page

MEASURE = """<script>
document.querySelectorAll("details").forEach((each) => { each.open = true; });
const outside = [...document.querySelectorAll("body *")].filter(
  (each) => !each.closest(".scroll, svg") && each.getBoundingClientRect().right > innerWidth);
const names = outside.map((each) => `${each.tagName}.${each.className}`);
parent.postMessage(`${document.documentElement.scrollWidth} of ${innerWidth} ${names.slice(0, 5)}`, "*");
</script>"""
NARROW = """<!DOCTYPE html><title>nothing</title>
<script>addEventListener("message", (event) => { document.title = event.data; });</script>
<iframe width="320" height="900" style="border: 0" src="scripted.html"></iframe>"""
SEARCH = """<script>
document.querySelector("#search input").value = "NEEDLE in";
document.querySelector("#search input").dispatchEvent(new Event("input"));
setTimeout(() => {
  const shown = [...document.querySelectorAll("details.trial")].filter((each) => each.offsetHeight > 0);
  document.title = `${shown.length}: ${document.querySelector("#search output").textContent}`;
}, 1000);
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two arms on which everything that servers and models wrote is hostile."""
    folder = tmp_path_factory.mktemp("browser")
    records = [
        *(record(each, number, "failed") for each in "abcdefg" for number in (1, 2)),
        *(record(each, number, arm=NEW) for each in "abcdefg" for number in (1, 2)),
    ]
    long = "x" * 3_000
    run = told_run(folder / "run", records, events_of(HOSTILE, f"{HOSTILE}{long}", HOSTILE, HOSTILE), arms=(BASE, NEW))
    tell(run, records[5], events_of("a needle in a haystack"))
    path = folder / "report.html"
    path.write_text(html_page(page_of(run)), "utf-8")
    return path


def test_its_own_script_runs_and_nothing_that_it_shows_does(page: Path) -> None:
    document, log = browse(page, f"#c-1-{NEW.id}")
    assert re.search(r"<title>new is better than base", document)
    assert re.search(r'<form id="search" role="search">', document)  # no longer hidden: the script ran
    assert re.search(rf'<details class="trial" id="c-1-{NEW.id}"[^>]* open', document)
    assert "<img" not in document
    assert not re.search("Content.Security.Policy|Uncaught|ERR_", log)


def test_a_script_that_is_not_the_pages_own_is_refused(page: Path) -> None:
    other = page.with_name("other.html")
    other.write_text(
        page.read_text("utf-8").replace("<body>", "<body><script>document.title='owned'</script>"), "utf-8"
    )
    document, log = browse(other)
    assert "<title>new is better than base" in document
    assert "Content Security Policy" in log


def with_script(page: Path, script: str) -> Path:
    """The page without its policy, and with a script that looks at it."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    other = page.with_name("scripted.html")
    other.write_text(text.replace("</body>", f"{script}</body>"), "utf-8")
    return other


def test_a_search_shows_the_trials_that_hold_the_words(page: Path) -> None:
    document, _ = browse(with_script(page, SEARCH), "#%E0%A4%A")  # no address of anything
    assert "<title>1: 1 of 28</title>" in document


def test_nothing_is_wider_than_a_screen_of_320_pixels(page: Path) -> None:
    with_script(page, MEASURE)
    narrow = page.with_name("narrow.html")  # a window itself is never as narrow
    narrow.write_text(NARROW, "utf-8")
    document, _ = browse(narrow)
    assert "<title>320 of 320 </title>" in document
