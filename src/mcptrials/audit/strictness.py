"""Strictness: a right answer in another form that a grader refuses, though the prompt asks for no form."""

from collections.abc import Iterator, Sequence

from mcptrials.audit.line import Doubt
from mcptrials.audit.prompting import FORM
from mcptrials.graders.answer import match_answer
from mcptrials.graders.answer.date import read_days
from mcptrials.graders.exact_answer import ExactAnswer
from mcptrials.protocols import GradeInput
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome

_FIX = "use a kind that takes every form of it, or ask for the form in the prompt"
_THOUSAND = 4
_LONGEST = 300
"""Digits of a number; Python reads no more than 4,300 of them."""


def over_strict(task: Task, graders: Sequence[ExactAnswer]) -> Doubt | None:
    """The first form of the right answer that is refused, of those that the ordinary comparison takes as the same."""
    right = task.reference.answer if task.reference else None
    if right is None or task.combine == "any" or FORM.search(task.prompt):
        return None
    for form in dict.fromkeys(_forms(right.strip(), any_case=not any(each.case_sensitive for each in graders))):
        if match_answer(right, form).passed and any(_refuses(task, grader, form) for grader in graders):
            said = "another form of it" if task.split == "held_out" else repr(form)
            what = f"over-strict: its grader refuses {said}, which says the same, and its prompt asks for no form"
            return Doubt(what, _FIX)
    return None


def _refuses(task: Task, grader: ExactAnswer, form: str) -> bool:
    outcome = Outcome(answer=form, framing="tagged", stop="answer")
    return grader.grade(GradeInput(task, outcome, Transcript())).value is False


def _forms(right: str, *, any_case: bool) -> Iterator[str]:
    """Ways in which models write the same."""
    if day := read_days(right, None).one:
        yield from (f"{day.day} {day:%B} {day.year}", f"{day:%B} {day.day}, {day.year}", day.isoformat())
    if right.isascii() and right.isdigit() and _THOUSAND <= len(right) <= _LONGEST:
        yield f"{int(right):,}"
    yield from (f"**{right}**", f'"{right}"', f"{right}.")
    if any_case:
        yield from (right.upper(), right.lower(), right.capitalize())
