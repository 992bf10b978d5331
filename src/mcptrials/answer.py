"""The frame in which a final answer is asked for, and how it is taken out of a final message."""

import re
import unicodedata
from typing import Literal

Framing = Literal["tagged", "untagged", "hedged", "missing"]

REQUEST = "When the task is done, write the final answer, and nothing else, between <answer> and </answer>."
"""Stands in the user prompt for every host, so that hosts whose system prompt is not ours get the same request."""

SHORT = 200
"""Characters up to which an untagged final message is itself taken for the answer."""

_OPENING = re.compile("<answer>", re.IGNORECASE)
_CLOSING = re.compile("</answer>", re.IGNORECASE)


def ask(prompt: str) -> str:
    """The user prompt of a task with the request for the frame."""
    return f"{prompt.rstrip()}\n\n{REQUEST}"


def extract(message: str | None) -> tuple[str | None, Framing]:
    """The answer of a final message, and how it was framed.

    The last `<answer>` that is not empty counts; several that differ are `hedged`. Without a tag a short message is
    the answer itself.
    """
    untagged, *tagged = (_CLOSING.split(part)[0].strip() for part in _OPENING.split(message or ""))
    answers = [found for found in tagged if found]
    if answers:
        return answers[-1], "hedged" if len(set(map(_folded, answers))) > 1 else "tagged"
    if untagged and not tagged and len(untagged) <= SHORT:
        return untagged, "untagged"
    return None, "missing"


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
