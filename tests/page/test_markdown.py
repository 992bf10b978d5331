"""The page in Markdown: the same numbers, in tables that foreign text cannot leave."""

from pathlib import Path

from markdown_it import MarkdownIt
from tests.hand_made import BASE, NEW
from tests.page.told import HOSTILE, events_of, page_of, simple_records, told_run

from mcptrials.page import html_page, markdown_page
from mcptrials.page.markdown import escaped


def rendered(text: str) -> str:
    """By a parser of its own; raw HTML would pass."""
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


def test_the_numbers_are_those_of_the_html_page(tmp_path: Path) -> None:
    records = [*simple_records(), *simple_records(arm=NEW)]
    contents = page_of(told_run(tmp_path / "run", records, events_of(), arms=(BASE, NEW)))
    text = rendered(markdown_page(contents))
    page = html_page(contents)
    for heading in ("Estimates", "Tasks", "Tools", "What was run"):
        assert f"<h2>{heading}</h2>" in text
    [line] = contents.data["headline"]["lines"]
    assert (text.count(line["sentence"]), text.count(line["reason"]) > 0) == (1, True)
    for number in ("75.0 %", "[", "1 of 2", "2 of 2", "Exact p 1."):
        assert number in text
        assert number in page
    assert text.count("<tr>") == (1 + 1) + (1 + 4) + (1 + 2) + (1 + 2 * 2) + (1 + 6) + (1 + 2)


def test_hostile_text_stays_text_within_its_cell(tmp_path: Path) -> None:
    records = simple_records("ab", cause=HOSTILE)
    run = told_run(tmp_path / "run", records, events_of(tool=HOSTILE), limits={HOSTILE: HOSTILE})
    text = markdown_page(page_of(run))
    html = rendered(text)
    for markup in ("<script", "<img", "<code>", "<em>", "<a ", "<style"):
        assert markup not in html
    assert "&lt;/script&gt;" in html
    rows = [line for line in text.splitlines() if "owned" in line and line.startswith("|")]
    assert len(rows) >= 3
    assert "://evil" not in text
    assert "@everyone" not in text


def test_what_would_be_markup_is_escaped_and_nothing_else_is() -> None:
    plain = "find_issue-2 costs 1.50 (+3.1 %), 20261201-a: no (x)!"
    assert escaped(plain) == plain
    marks = ["# x", "- x", "+ x", "1. x", "12) x", "> x", "---", "_x_", "*x*", "`x`", "a|b", "[x](y)", "<b>", "~~x~~"]
    for hostile in [*marks, "&amp;", "\\", "![x](y)"]:
        assert rendered(f"- {escaped(hostile)}") == rendered("- x").replace(
            "x", hostile.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        )
