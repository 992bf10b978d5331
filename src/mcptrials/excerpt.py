"""A part of a text that is too long to be shown whole, with a mark where it was cut.

The mark is what `spelling` knows cuts by: a secret that stands across one would else leave its half behind.
"""

CUT = "[...]"


def beginning(text: str, limit: int) -> str:
    """The first `limit` characters, and the mark if there were more."""
    return text if len(text) <= limit else f"{text[:limit]}{CUT}"


def beginning_of_bytes(raw: bytes, limit: int) -> str:
    """The same of UTF-8, with the whole size after the mark; half a character at the cut is left out."""
    if len(raw) <= limit:
        return raw.decode("utf-8", "replace")
    return f"{_decoded(raw[:limit])}{CUT} ({len(raw)} bytes)"


def without_middle(head: bytes, tail: bytes, left_out: int) -> str:
    """Beginning and end of a text in UTF-8, of which `left_out` bytes between them are gone."""
    if not left_out:
        return (head + tail).decode("utf-8", "replace")
    return f"{_decoded(head)}\n[... {left_out} bytes left out ...] {_decoded(tail)}"


def end(tail: bytes) -> str:
    """The end of a text in UTF-8 whose beginning is gone."""
    return f"{CUT} {_decoded(tail)}"


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip("\ufffd")
