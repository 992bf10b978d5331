"""The page in Markdown: the same data as tables, for pull requests and chats."""

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from mcptrials import excerpt
from mcptrials.page import wording
from mcptrials.page.contents import Contents
from mcptrials.page.vocabulary import FILTERS, NAMES
from mcptrials.visible import one_line

_MARKS = re.compile(r"[\\`*\[<|~$&]|(?<!\w)_|_(?!\w)|^[#>]|^[-+](?=[-\s]|$)|(?<=\d)[.)](?=\s|$)")
"""What would be markup. Between letters `_` is none."""
_LINKED = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)(?=\w)|(?<=#)(?=\d)")
"""What readers of Markdown make links and mentions of, without any brackets."""


def markdown_page(contents: Contents) -> str:
    """The whole document; transcripts are named, not shown."""
    environment = Environment(
        autoescape=False,  # noqa: S701 - `finalize` escapes for Markdown, which HTML's escapes would spoil
        finalize=escaped,
        loader=PackageLoader("mcptrials.page"),
        lstrip_blocks=True,
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters |= FILTERS
    template = environment.get_template("page.md")
    return template.render(data=contents.data, reading=contents.reading, **NAMES)


def escaped(value: Any) -> str:
    """Foreign text that stays within its cell and means nothing."""
    text = _MARKS.sub(r"\\\g<0>", one_line(excerpt.beginning(str(value), wording.WORDS)))
    return _LINKED.sub("&#8203;", text)
