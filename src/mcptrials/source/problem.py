"""What is wrong with a user's file, as one line with its place and the nearest valid name."""

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from mcptrials import excerpt
from mcptrials.errors import UsageError
from mcptrials.source.document import Key, Keys, Source, Unquoted

_SHOWN = 60
_NAMED = 20
"""Names that are listed where none is near; a suite may have thousands."""
Place = Callable[[Keys], Keys]
"""From a place in a value that is validated to the place in the file."""


def below(*prefix: Key) -> Place:
    """Of a value that stands at `prefix`."""
    return lambda key: (*prefix, *key)


def explain(
    source: Source, error: ValidationError, place: Place | None = None, names: Iterable[str] = ()
) -> UsageError:
    """The first problem that pydantic found, as one line with file, line, key and the nearest valid name.

    Args:
        names: valid keys besides those of the model.
    """
    problem = _flat(min(error.errors(include_url=False), key=lambda found: found["type"] == "missing"))
    kind, context = problem["type"], problem.get("ctx", {})
    own = (context["key"],) if kind in ("unknown_key", "wrong_key") else ()
    key = (place or below())((*problem["loc"], *own))
    what, hint = problem["msg"].removeprefix("Value error, ").removeprefix("Input "), None
    if kind == "missing":
        return UsageError(f"key {str(key[-1])!r} is missing", where=source.where(_real(source, key[:-1])))
    if own:
        hint = nearest(context["key"], [*context["known"], *names]) if kind == "unknown_key" else None
        return UsageError(what, where=source.where(key), hint=hint)
    what = _PLAINLY[kind].format(**context) if kind in _PLAINLY else what
    given = problem.get("input")
    if kind == "literal_error" and isinstance(given, str):
        hint = nearest(given, re.findall(r"'([^']+)'", context["expected"]))
    elif kind == "string_type" and isinstance(given, int | float):
        hint = f'write "{_shown(given)}"'
    if kind != "value_error" and not isinstance(given, dict | list | tuple):
        what = f"{what}, not {_shown(given)}"
    return UsageError(what, where=source.where(_real(source, key) or key), hint=hint)


_PLAINLY = {
    "bool_type": "should be true or false",
    "dict_type": "should be a mapping",
    "float_type": "should be a number",
    "int_type": "should be a whole number",
    "model_type": "should be a mapping",
    "string_too_short": "is empty",
    "string_type": "should be text",
    "too_short": "should have at least {min_length} item(s)",
    "tuple_type": "should be a list",
}
"""What pydantic says in the words of Python, in those of YAML."""


def _flat(problem: Any) -> Any:
    """The problem itself, of one that a validator found inside its value."""
    while problem["type"] == "inside":
        outer, problem = problem, problem["ctx"]["problem"]
        problem = problem | {"loc": (*outer["loc"], outer["ctx"]["key"], *problem["loc"])}
    return problem


def _real(source: Source, key: Keys) -> Keys:
    """`key` without the parts that stand in no file: pydantic's names for the members of a union."""
    real: Keys = ()
    for part in key:
        if source.known((*real, part)) != real:
            real = (*real, part)
    return real


def _shown(value: Any) -> str:
    text = value.written if isinstance(value, Unquoted) else repr(value)
    if isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "null"}[value]
    return excerpt.beginning(text, _SHOWN)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` for the closest known name; else the list of them, or its beginning."""
    names = sorted(set(known))
    if (close := alike(name, names)) is not None:
        return f"did you mean {close!r}?"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"known here: {', '.join(names[:_NAMED])}{more}" if names else None


def alike(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known name that another one is most likely meant to be.

    Args:
        least: from 0 (anything) to 1 (the same).
    """
    close = difflib.get_close_matches(name, sorted(set(known)), n=1, cutoff=least)
    return close[0] if close else None
