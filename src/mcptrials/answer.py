"""The frame in which a final answer is asked for, and how it is taken out of a final message."""

import re
import unicodedata
from typing import Literal

Framing = Literal["tagged", "untagged", "hedged", "missing"]

REQUEST = "End your last message with the final answer, and nothing but the answer, between <answer> and </answer>."
"""Stands in the user prompt for every host, so that hosts whose system prompt is not ours get the same request."""

SHORT = 200
"""Characters up to which an untagged final message is itself taken for the answer."""

_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)
_ANY_TAG = re.compile(r"</?answer>", re.IGNORECASE)


def ask(prompt: str) -> str:
    """The user prompt of a task with the request for the frame."""
    return f"{prompt.rstrip()}\n\n{REQUEST}"


def extract(message: str | None) -> tuple[str | None, Framing]:
    """The answer of a final message, and how it was framed.

    The last `<answer>` counts; several that differ are `hedged`. Without a tag a short message is the answer itself.
    """
    text = (message or "").strip()
    tagged = [found.strip() for found in _TAG.findall(text)]
    if tagged:
        answer = _ANY_TAG.sub("", tagged[-1]).strip()
        hedged = len({_folded(found) for found in tagged if found}) > 1
        return (answer or None, "hedged" if hedged else "tagged" if answer else "missing")
    return (text, "untagged") if text and len(text) <= SHORT else (None, "missing")


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
