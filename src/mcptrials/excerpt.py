"""A part of a text that is too long to be shown whole, with a mark where it was cut.

The mark is what `spelling` knows cuts by: a secret that stands across one would else leave its half behind.
"""

import re

CUT = "[...]"
_ERROR = re.compile(r"\b(?:error|fatal|panic|exception|failed)\b|\b\w+(?:Error|Exception): |\bERR!", re.IGNORECASE)
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"[ |]*([\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)")
_NO_REASON = re.compile(r"(?:See|Run|Try) ['\"`].*--help|Unable to find image |[0-9a-f]{12}: [A-Z]|Digest: |Status: ")
"""What docker and podman say around the reason: where help is, and how a pull goes."""
_TELLING_LINES = 2
"""What npm says first is a code, and the reason stands behind it."""


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


def telling(text: str, limit: int) -> str:
    """Why a program failed, by its stderr: what it calls an error, else its last line; of a traceback, its end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if _TRACEBACK in text:
        raised = [match[1] for line in lines if (match := _RAISED.fullmatch(line))]
        return beginning((raised or lines)[-1], limit)
    lines = [line for line in lines if not _NO_REASON.match(line)] or lines
    errors = list(dict.fromkeys(line for line in lines if _ERROR.search(line)))
    return " / ".join(beginning(line, limit) for line in (errors[:_TELLING_LINES] or lines[-1:]))


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip("\ufffd")
