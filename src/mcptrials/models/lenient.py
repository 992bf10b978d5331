"""Tool calls that a small model wrote as text: JSON objects, bare or in code fences.

Words may stand before the first call, since models are asked to think aloud; after it there must be nothing but calls.
So an answer that merely holds JSON stays an answer.
"""

import re
from collections.abc import Container, Iterator
from json import JSONDecoder

_DECODER = JSONDecoder()
_GAP = re.compile(r"(?:\s|,|```(?:json|JSON)?)*")
_SPACE = re.compile(r"\s*")
_OPENING = re.compile(r"^\s*(?:```|\{|\[)", re.MULTILINE)


def find_calls(text: str, tools: Container[str]) -> tuple[tuple[str, str], ...]:
    """The calls that the text consists of, each as name and argument text; none if it is anything else."""
    opening = _OPENING.search(text)
    if opening is None:
        return ()
    try:
        return tuple(_calls(text[opening.start() :], tools))
    except (ValueError, RecursionError):
        return ()


def _calls(text: str, tools: Container[str]) -> Iterator[tuple[str, str]]:
    at = _skip(_GAP, text, 0)
    while at < len(text):
        if text[at] == "[":
            _, end = _DECODER.raw_decode(text, at)
            yield from _calls(text[at + 1 : end - 1], tools)
        else:
            call, end = _call(text, at, tools)
            yield call
        at = _skip(_GAP, text, end)


def _call(text: str, at: int, tools: Container[str]) -> tuple[tuple[str, str], int]:
    """The call object at a position, and where it ends; its arguments keep the model's spelling."""
    value, end = _DECODER.raw_decode(text, at)
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in tools or not isinstance(value.get("arguments"), dict):
        raise ValueError("not a call of a known tool")
    return (name, _member(text, at, "arguments")), end


def _member(text: str, at: int, wanted: str) -> str:
    """The text of the last member of that name in the valid JSON object at a position."""
    found, at = "", _skip(_SPACE, text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(_SPACE, text, _skip(_SPACE, text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found = text[start:end] if key == wanted else found
        at = _skip(_SPACE, text, end)
        at = _skip(_SPACE, text, at + 1) if text[at] == "," else at
    return found


def _skip(what: "re.Pattern[str]", text: str, at: int) -> int:
    match = what.match(text, at)
    return match.end() if match else at
