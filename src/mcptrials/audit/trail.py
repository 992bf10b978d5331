"""Trail: what a reference takes from one answer to the next, and whether altered answers still lead to its end."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mcptrials.encoding import parse_foreign
from mcptrials.runner.rehearsal import Played
from mcptrials.transcript import CallMade

_PARTS = re.compile(r"[,;\n]")


def is_lost(played: Played, shown: Sequence[str]) -> bool:
    """Whether a model that sees these answers no longer finds what the reference goes by.

    That is each argument, and each part of the final answer, which stood in an answer before it and not in the prompt:
    the first line that told it must still be told.
    """
    return any(line not in _lines(shown[:position]) for position, _, line in _trail(played))


def is_gone(played: Played, shown: Sequence[str]) -> bool:
    """The same, wherever and beside whatever a value stands."""
    return any(line_with(value, shown[:position]) is None for position, value, _ in _trail(played))


def _trail(played: Played) -> Iterator[tuple[int, str, str]]:
    """Each value that was told, with the number of answers before its use and the line that told it first."""
    real = [told_by(made) for made in played.transcript.calls]
    for position, value in _taken(played):
        line = None if line_with(value, [played.task.prompt]) else line_with(value, real[:position])
        if line is not None:
            yield position, value, line


def _taken(played: Played) -> Iterator[tuple[int, str]]:
    """Each value that is used, with the number of answers that came before."""
    calls = played.transcript.calls
    for position, made in enumerate(calls):
        yield from ((position, text) for text in _texts(made.call.arguments))
    answer = played.task.reference.answer if played.task.reference else None
    yield from ((len(calls), part) for part in parts(answer or ""))


def parts(answer: str) -> list[str]:
    """What an answer consists of, each item by itself."""
    return [part.strip() for part in _PARTS.split(answer) if part.strip()]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        yield str(value).strip()


def line_with(value: str, texts: Iterable[str]) -> str | None:
    """The first line in which a value stands as a word, whatever its case."""
    word = re.compile(rf"(?<!\w){re.escape(value.casefold())}(?!\w)")
    return next((line for line in _lines(texts) if word.search(line.casefold())), None)


def _lines(texts: Iterable[str]) -> list[str]:
    return [line.strip() for text in texts for line in text.splitlines()]


def told_by(made: CallMade) -> str:
    """All that an answer says, also what stands in its structured content alone."""
    return text_of(made.answer.result) if made.answer else ""


def text_of(result: Any) -> str:
    """The texts of a raw result, and its structured content; of JSON each value in a line of its own."""
    if not isinstance(result, dict):
        return ""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    structured = result.get("structuredContent")
    return "\n".join([*map(_spread, texts), *([_indented(structured)] if structured is not None else [])])


def _spread(text: str) -> str:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return _indented(parse_foreign(text))
    except ValueError:
        return text


def _indented(value: Any) -> str:
    return json.dumps(value, indent=0, ensure_ascii=False)
