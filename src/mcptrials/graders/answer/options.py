"""The options of a comparison, and which kinds of answer each is for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Kind = Literal[
    "number", "text", "id", "date", "datetime", "set", "list", "boolean", "percent", "money", "quantity", "choice",
    "url", "phone", "json", "none", "regex",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)

_MEASURED: frozenset[Kind] = frozenset({"number", "percent", "money", "quantity"})
_WORDED: frozenset[Kind] = frozenset({"text", "id", "set", "list", "choice", "none"})


@dataclass(frozen=True, slots=True)
class Options:
    """How wide or narrow an expected value is taken."""

    abs_tol: float | None = None
    rel_tol: float | None = None
    unit: str | None = None
    unit_optional: bool = False
    decimal_comma: bool = False
    fraction_ok: bool = False
    dayfirst: bool | None = None
    assume_utc: bool = False
    epoch_ok: bool = False
    case_sensitive: bool = False


FITS: Mapping[str, frozenset[Kind]] = {
    "abs_tol": _MEASURED,
    "rel_tol": _MEASURED,
    "unit": frozenset({"number", "quantity"}),
    "unit_optional": frozenset({"number", "quantity"}),
    "decimal_comma": _MEASURED,
    "fraction_ok": frozenset({"percent"}),
    "dayfirst": frozenset({"date", "datetime"}),
    "assume_utc": frozenset({"datetime"}),
    "epoch_ok": frozenset({"datetime"}),
    "case_sensitive": _WORDED,
}
NAMES = tuple(field.name for field in fields(Options))
_TOLERANCES = ("abs_tol", "rel_tol")


def given_names(options: Options) -> list[str]:
    """The options that are not as they are by default."""
    return [field.name for field in fields(options) if getattr(options, field.name) != field.default]


def misfits(names: list[str], kinds: set[Kind]) -> list[str]:
    """Those of `names` that are for none of `kinds`."""
    return [name for name in names if not FITS[name] & kinds]


def unfit(name: str, kinds: set[Kind]) -> str:
    """What is wrong with an option that is for none of `kinds`."""
    own = sorted(each for each, fitting in FITS.items() if fitting & kinds)
    said = f"{name!r} is for kind {', '.join(sorted(FITS[name]))}, and this is {' or '.join(sorted(kinds))}"
    return f"{said}, which has {', '.join([*own, 'aliases'])}"


def value_problem(name: str, value: Any) -> str | None:
    """Why an option cannot have this value."""
    if name in _TOLERANCES:
        right = value is None or (
            isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and math.isfinite(value)
        )
        return None if right else f"{name!r} should be a number that is not negative, not {value!r}"
    if name == "unit":
        return None if value is None or isinstance(value, str) else f"'unit' should be text, not {value!r}"
    right = isinstance(value, bool) or (name == "dayfirst" and value is None)
    return None if right else f"{name!r} should be true or false, not {value!r}"
