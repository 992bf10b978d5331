"""Untrusted text with control characters shown instead of obeyed."""

import re

_OBEYED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line end; escape sequences begin with one
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of writing
    "\u180e\u200b\u2028\u2029\u2060-\u2065\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible, or a line end
    "\ud800-\udfff"
)
_CONTROL = re.compile(f"[{_OBEYED}]")


def plain(text: object) -> str:
    """Text from servers, models and files with control characters shown instead of obeyed."""
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), str(text))


def one_line(text: object) -> str:
    """The same as one line, which cannot pretend to be two."""
    return " ".join(plain(text).split())
