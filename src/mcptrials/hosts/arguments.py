"""Our own check of a call's arguments against the tool's schema: a label, never a gate; the call is sent all the same.

Schemas come from the server: nothing is fetched for a `$ref`, and patterns run in bounded time.
"""

from collections.abc import Iterator
from typing import Any

import regex
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

_PATTERN_TIMEOUT_S = 0.2


def _pattern(validator: Any, expression: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    try:
        found = regex.search(expression, instance, timeout=_PATTERN_TIMEOUT_S)
    except (regex.error, TimeoutError):
        return  # a pattern that cannot be run says nothing about the argument
    if found is None:
        yield ValidationError(f"{instance!r} does not match {expression!r}")


# patternProperties would run a server's patterns with the unbounded engine; what they say goes unchecked.
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _pattern, "patternProperties": lambda *_: ()}
)


def argument_error(schema: Any, arguments: Any) -> str | None:
    """Why `arguments` do not fit `schema`, with the JSON path; None when they fit or it cannot be told."""
    try:
        problem = next(iter(_Validator(schema, registry=Registry()).iter_errors(arguments)), None)
    except (Unresolvable, RecursionError, TypeError, ValueError, AttributeError, KeyError):
        return None  # a broken schema is the server's fault and is reported by its own check
    if problem is None:
        return None
    message = problem.message if len(problem.message) <= 200 else problem.message[:200] + "..."  # noqa: PLR2004
    return f"{problem.json_path}: {message}"
