"""Reading a provider's JSON, whose shape cannot be relied on."""

from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def count(counts: Any, key: str) -> int | None:
    """A number of tokens, or None when it is not there."""
    value = mapping(counts).get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def joined(parts: Any, key: str) -> str | None:
    """The texts under a key of some objects, as one; None without any."""
    items = parts if isinstance(parts, list) else []
    texts = [mapping(part).get(key) for part in items]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if known else None
