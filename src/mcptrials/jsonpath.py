"""Dotted paths into JSON values: `$.items[0].name`, `items[-1]`, `items[*].name`, `name`."""

import re
from typing import Any

_ROOT = re.compile(r"\$(?=[.\[]|$)")
_EACH = "[*]"
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d{1,9})\]|\[\"([^\"]*)\"\]")


def parse_path(path: str) -> tuple[str | int, ...]:
    """The steps of a path.

    Raises:
        ValueError: the path is malformed.
    """
    rest = path[1:] if _ROOT.match(path) else path
    steps: list[str | int] = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise ValueError(f"path {path!r} is malformed at {rest[position:]!r}; write a.b[0].c")
        name, index, quoted = match.groups()
        steps.append(int(index) if index is not None else name if name is not None else quoted)
        position = match.end()
    return tuple(steps)


def check_pick(path: str) -> None:
    """Raises:
    ValueError: the path is malformed.
    """
    for part in path.split(_EACH):
        parse_path(part)


def pick(value: Any, path: str) -> Any:
    """The value at `path`; `items[*].name` is the list of what the rest leads to from each item.

    Raises:
        LookupError: there is nothing at the path; the message names the step.
    """
    head, each, rest = path.partition(_EACH)
    found = _at(value, head)
    if not each:
        return found
    if not isinstance(found, list):
        raise LookupError(f"no list at {head!r} of path {path!r}")  # noqa: TRY004 - nothing is there
    picked = [pick(item, rest) for item in found]
    return [item for items in picked for item in items] if _EACH in rest else picked


def _at(value: Any, path: str) -> Any:
    for step in parse_path(path):
        try:
            value = _inner(value, step)
        except (KeyError, IndexError, TypeError):
            raise LookupError(f"nothing at {step!r} of path {path!r}") from None
    return value


def _inner(value: Any, step: str | int) -> Any:
    if isinstance(value, str):
        raise TypeError("the characters of a text are no items")
    return value[step]
