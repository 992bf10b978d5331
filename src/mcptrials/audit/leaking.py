"""Leaking: answers that stand where they can be read without the work, and answers that stand nowhere."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from mcptrials.audit.line import Doubt
from mcptrials.audit.trail import line_with, parts, told_by
from mcptrials.events import PromptGiven, ToolShown
from mcptrials.graders.answer import Kind, infer
from mcptrials.graders.answer.options import Options
from mcptrials.runner.rehearsal import Played
from mcptrials.task import Task

MAX_FILES = 2000
"""Names of fixtures that are looked at."""
_SHORT = 3
"""Figures of a number that may stand anywhere by chance."""
_CHOSEN: frozenset[Kind] = frozenset({"boolean", "choice", "none"})
"""Kinds whose answers a prompt has to name."""
_FOUND: frozenset[Kind] = frozenset({"id", "url", "phone"})
"""Kinds whose answers nobody computes: they are read somewhere."""
_OFFERS = re.compile(r"(?i)\b(?:or|either|which of|one of|between|whether)\b")
_SENTENCE = re.compile(r"(?<=[.?!;])\s+|\n")
_MOVE = "take it out of there, or ask for something that stands in the server's answers alone"


def leaks(task: Task, played: Played | None, fixtures: Mapping[str, str], project_dir: Path) -> Iterator[Doubt]:
    """Where the answer of a task that asks for work stands before any work is done.

    For tasks that pass by their right answer alone: where the state decides too, to know the answer is not enough.
    """
    right = task.reference.answer if task.reference else None
    if right is None or not task.reference or not task.reference.calls or task.expects != "act" or _may_stand(right):
        return
    if any(_tells(sentence, right) and not _OFFERS.search(sentence) for sentence in _SENTENCE.split(task.prompt)):
        yield Doubt("leaks: its answer stands in its prompt, so that it passes without the server", _MOVE)
    for tool in _tools(played):
        if _tells(f"{tool.description or ''}\n{tool.tool}", right):
            yield Doubt(f"leaks: its answer stands in the description of tool {tool.tool!r}", _MOVE)
            break
    if name := next((each for each in fixture_names(fixtures, project_dir) if _is_in_name(right, each)), None):
        named = "a fixture" if task.split == "held_out" else f"fixture {name!r}"
        yield Doubt(f"leaks: its answer stands in the name of {named}", "give the file another name")


def unfounded(played: Played) -> Doubt | None:
    """A key or an address that is answered though no call of the reference was told it."""
    right = played.task.reference.answer if played.task.reference else None
    made = played.transcript.calls
    if right is None or not made or infer(right, Options()) not in _FOUND:
        return None
    told = [played.task.prompt, *(told_by(each) for each in made)]
    told += [str(value) for each in made for value in each.call.arguments.values()]
    if all(line_with(part, told) for part in parts(right)):
        return None
    what = "its answer stands in nothing that its reference's calls were answered: do they lead to it?"
    return Doubt(what, "let the reference make the calls that find the answer, and compare")


def fixture_names(fixtures: Mapping[str, str], project_dir: Path) -> Iterator[str]:
    """The names of what is copied for a trial, and of what lies in it."""
    for source, target in fixtures.items():
        yield from PurePosixPath(target).parts[1:]
        path = project_dir / source
        if path.is_dir():
            yield from (each.name for each in islice(path.rglob("*"), MAX_FILES))


def _tools(played: Played | None) -> Iterable[ToolShown]:
    events: Sequence[object] = played.transcript.events if played else ()
    return next((event.tools for event in events if isinstance(event, PromptGiven)), ())


def _may_stand(right: str) -> bool:
    """Whether an answer stands in a prompt because it must, or by chance."""
    figures = re.sub(r"\D", "", right)
    return infer(right, Options()) in _CHOSEN or (len(figures) == len(right.strip()) and len(figures) < _SHORT)


def _tells(text: str, right: str) -> bool:
    items = parts(right)
    return bool(items) and all(line_with(item, [text]) is not None for item in items)


def _is_in_name(right: str, name: str) -> bool:
    """Whether a name says the answer beside other things; an answer that is a file's name is what was asked for."""
    words, wanted = _words(name), _words(right)
    if wanted in (words, _words(PurePosixPath(name).stem)) or not wanted:
        return False
    return f" {' '.join(wanted)} " in f" {' '.join(words)} "


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())
