"""Lasting: prompts whose right answer will be another one later."""

import re

from mcptrials.audit.line import Doubt
from mcptrials.task import Task

_UNITS = "(?:hour|day|night|morning|week|weekend|month|quarter|year|monday|tuesday|wednesday|thursday|friday)"
_CLOCK = re.compile(
    r"(?i)\b(?:today|tonight|yesterday|tomorrow|currently|right now|at the moment|as of now|nowadays|recently"
    r"|how (?:old|long ago)|current (?:date|time)|days since|overdue"
    rf"|(?:this|last|next|past|previous|current) (?:\d+ |few |couple of )?{_UNITS}s?"
    rf"|{_UNITS}s? (?:ago|until|left|remaining))\b"
)
"""What is reckoned from the moment of asking."""
_DATED = re.compile(r"\b(?:19|20)\d\d\b")
_WORLD = re.compile(
    r"(?i)\b(?:current|latest|newest|most recent(?:ly)?|so far|up to date"
    r"|how many(?: \w+){0,5} open)\b"
)
"""What changes with the world behind the server."""


def ages(task: Task, *, is_reset: bool) -> Doubt | None:
    """Why the right answer may change; `is_reset`: every trial has the same environment."""
    if (found := _CLOCK.search(task.prompt)) and not _DATED.search(task.prompt):
        what = (
            f"unstable: its prompt says {found[0]!r} and no date, so its right answer changes with the day of the run"
        )
        return Doubt(what, "name the date in the prompt, such as 'It is 2026-03-02'")
    if not is_reset and (found := _WORLD.search(task.prompt)):
        what = f"unstable: its prompt says {found[0]!r}, and no environment is declared that stays as it is"
        return Doubt(
            what, "declare an environment with fixtures, or ask about what is over: closed years, old releases"
        )
    return None
