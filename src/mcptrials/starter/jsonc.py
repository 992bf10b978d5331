"""JSON with comments and trailing commas, as editors write their settings."""

import re
from pathlib import Path

from mcptrials.source import Source, read_text
from mcptrials.source.json_text import json_source

_STRING = r'"(?:[^"\\]|\\.)*+"?'  # what is not closed goes on to the end, so that the search stays linear
_TOKEN = re.compile(rf"{_STRING}|//[^\r\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


def load_jsonc(path: Path) -> Source:
    """The one document of a file; lines and columns stay those of the file.

    Raises:
        UsageError: the file cannot be read or parsed; names file and line.
    """
    text = _TOKEN.sub(lambda match: _blank(match.group(), "/"), read_text(path))
    text = _COMMA.sub(lambda match: _blank(match.group(), ","), text)
    return json_source(path, text, 1)


def _blank(part: str, first: str) -> str:
    """What begins with `first` as white space of the same extent; anything else, a string, as it is."""
    return re.sub(r"[^\r\n]", " ", part) if part.startswith(first) else part
