"""Trail: what a reference takes from one answer to the next, and whether altered answers still lead to its end."""

import json
import re
from collections.abc import Iterator, Sequence
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
    real = [_shown(made) for made in played.transcript.calls]
    for position, value in _taken(played):
        told = None if _line_with(value, [played.task.prompt]) else _line_with(value, real[:position])
        if told is not None and told not in _lines(shown[:position]):
            return True
    return False


def _taken(played: Played) -> Iterator[tuple[int, str]]:
    """Each value that is used, with the number of answers that came before."""
    calls = played.transcript.calls
    for position, made in enumerate(calls):
        yield from ((position, text) for text in _texts(made.call.arguments))
    answer = played.task.reference.answer if played.task.reference else None
    for part in _PARTS.split(answer or ""):
        if part.strip():
            yield len(calls), part.strip()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        yield str(value).strip()


def _line_with(value: str, texts: Sequence[str]) -> str | None:
    """The first line in which a value stands as a word, whatever its case."""
    word = re.compile(rf"(?<!\w){re.escape(value.casefold())}(?!\w)")
    return next((line for line in _lines(texts) if word.search(line.casefold())), None)


def _lines(texts: Sequence[str]) -> list[str]:
    return [line.strip() for text in texts for line in text.splitlines()]


def _shown(made: CallMade) -> str:
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
