"""Reading a provider's JSON, whose shape cannot be relied on."""

from collections.abc import Mapping
from typing import Any

from mcptrials.errors import ProviderError

MOST_TOKENS = 10**12
"""More cannot be true, and sums of such numbers could not be recorded."""


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def objects(value: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of objects; without a value an empty one.

    Raises:
        ProviderError: it is something else. No model writes this, so it is the provider that failed.
    """
    items = [] if value is None else value
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise misshapen(what, value)
    return items


def word(value: Any, what: str) -> str | None:
    """A text or nothing.

    Raises:
        ProviderError: it is something else.
    """
    if value is not None and not isinstance(value, str):
        raise misshapen(what, value)
    return value


def misshapen(what: str, value: Any) -> ProviderError:
    """An answer that is not of the API's form; another request may be answered well."""
    message = f"the provider's reply is malformed: {what} is {_short(value)}"
    return ProviderError("http", message, status=200, retryable=True)


def _short(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.80}" if isinstance(value, str | int | float) else type(value).__name__


def count(counts: Any, key: str) -> int | None:
    """A number of tokens, or None when it is not there, or none that a reply can have."""
    value = mapping(counts).get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def joined(parts: Any, key: str) -> str | None:
    """The texts under a key of some objects, as one; None without any."""
    items = parts if isinstance(parts, list) else []
    texts = [mapping(part).get(key) for part in items]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if known else None
