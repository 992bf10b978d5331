"""The page in a real browser."""

import re
from pathlib import Path

import pytest
from tests.hand_made import BASE, NEW, record
from tests.page.browser import browse
from tests.page.told import HOSTILE, events_of, page_of, told_run

from mcptrials.page import html_page

MEASURE = """<script>
document.querySelectorAll("details").forEach((each) => { each.open = true; });
document.title = `${document.documentElement.scrollWidth} of ${innerWidth}`;
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


def test_nothing_is_wider_than_a_screen_of_320_pixels(page: Path) -> None:
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    measured = page.with_name("measured.html")
    measured.write_text(text.replace("</body>", f"{MEASURE}</body>"), "utf-8")
    document, _ = browse(measured, options=["--window-size=320,900"])
    found = re.search(r"<title>(\d+) of (\d+)</title>", document)
    assert found
    assert int(found[1]) <= int(found[2]) <= 500
