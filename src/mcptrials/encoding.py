"""JSON as this product reads and writes it: strict, one UTF-8 line, with a canonical hash."""

import hashlib
import json
import math
from typing import Any, NoReturn

LONG = 1 << 18
"""Characters of JSON from which on the work with it is kept off the event loop, where all trials would wait for it."""
MAX_DEPTH = 200
"""Levels of a JSON value from outside: what has more means nothing, and what validates it may give up at 255."""

_NESTING = (dict, list)
"""A tuple, since a union would be made anew for each of millions of values."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class TooDeepError(ValueError):
    """A JSON text is nested more deeply than anything that is meant to be read."""


class TooLargeError(ValueError):
    """A JSON text holds a number that no double holds: it is JSON, but means nothing here."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON (RFC 8259)")


def _finite(written: str) -> float:
    """A number as a float: one too large for it would become an infinity, which no JSON can be written of."""
    number = float(written)
    if not math.isfinite(number):
        raise TooLargeError(f"{written[:40]} is too large for a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
"""Made once: `json.loads` makes one for each text."""


def _decoded(text: bytes) -> str:
    """As `json.loads` reads bytes."""
    return text.decode(json.detect_encoding(text), "surrogatepass")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; NaN, infinities and numbers that would become one are refused.

    Raises:
        ValueError: the text is not JSON, or nested too deeply to be read.
    """
    try:
        return _DECODER.decode(_decoded(text) if isinstance(text, bytes) else text)
    except RecursionError as exc:
        raise TooDeepError("nested too deeply") from exc


def parse_foreign(text: str | bytes) -> Any:
    """The same of a text from a model, a provider or a trial's remains, which may have `MAX_DEPTH` levels.

    Raises:
        ValueError: the text is not JSON, or nested more deeply.
    """
    value = parse_json(text)
    if deeper(value, MAX_DEPTH):
        raise TooDeepError(f"nested more than {MAX_DEPTH} levels deep")
    return value


def deeper(value: Any, levels: int) -> bool:
    """Whether lists and mappings stand in each other more often than that."""
    row = [value] if isinstance(value, _NESTING) else []
    for _ in range(levels):
        if not row:
            return False
        row = [
            item
            for each in row
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, _NESTING)
        ]
    return bool(row)


def dump_text(value: Any) -> str:
    """`value` as compact JSON that always encodes to UTF-8.

    Lone surrogates, which servers can send as escapes, stay escaped: raw they have no UTF-8 form.
    """
    text = _ENCODER.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def dump_line(value: Any) -> bytes:
    """`value` as one line of a JSONL file."""
    return dump_text(value).encode() + b"\n"


def canonical_hash(value: Any) -> str:
    """SHA-256 (64 hex digits) of `value` as JSON with sorted keys: equal values, equal hashes."""
    text = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
