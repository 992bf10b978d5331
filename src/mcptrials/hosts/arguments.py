"""Our own check of arguments and results against a server's schemas: a label, never a gate; both pass all the same.

Schemas come from the server: nothing is fetched for a `$ref`, and neither patterns nor references run without end.
"""

import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import regex
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import UnknownType
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from mcptrials import excerpt

_TIME_S = 0.3
_SHOWN = 200
_ends_at_s: ContextVar[float] = ContextVar("_ends_at_s")


def _time_left_s() -> float:
    """Raises:
    TimeoutError: there is none.
    """
    left_s = _ends_at_s.get() - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _pattern(validator: Any, expression: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    try:
        found = regex.search(expression, instance, timeout=_time_left_s())
    except regex.error:
        return  # a pattern that cannot be run says nothing about the value
    if found is None:
        yield ValidationError(f"{instance!r} does not match {expression!r}")


def _timed(keyword: str) -> Callable[..., Iterator[ValidationError]]:
    """References to references multiply: each looks at the time."""

    def check(validator: Any, target: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _time_left_s()
        yield from Draft202012Validator.VALIDATORS[keyword](validator, target, instance, schema)

    return check


def _additional(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if "patternProperties" not in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, rule, instance, schema)


def _unchecked(*_: Any) -> tuple[ValidationError, ...]:
    """For what would run a server's patterns in the unbounded engine."""
    return ()


_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "$ref": _timed("$ref"),
        "$dynamicRef": _timed("$dynamicRef"),
        "pattern": _pattern,
        "patternProperties": _unchecked,
        "additionalProperties": _additional,
        "unevaluatedProperties": _unchecked,
    },
)
_BROKEN = (Unresolvable, UnknownType, RecursionError, ArithmeticError, LookupError, TypeError, ValueError)
"""What a broken schema raises; that is the server's fault and is reported by its own check."""


def misfit(schema: Any, value: Any) -> str | None:
    """Why `value` does not fit `schema`, with the JSON path; None when it fits or it cannot be told."""
    _ends_at_s.set(time.monotonic() + _TIME_S)
    try:
        problem = next(iter(_Validator(schema, registry=Registry()).iter_errors(value)), None)
    except (*_BROKEN, AttributeError, TimeoutError):
        return None
    if problem is None:
        return None
    return f"{problem.json_path}: {excerpt.beginning(problem.message, _SHOWN)}"
