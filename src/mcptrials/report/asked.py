"""Where an arm's model is not the one that was asked for, or was asked otherwise than the project file says."""

import re
from collections.abc import Iterable, Mapping, Sequence

from mcptrials.record import Record

_MOVING = re.compile(r"[-:](latest|free|0)$")
"""What ends names that stand for whichever version is current."""
_VERSION = re.compile(r"[-@:](latest|\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3}|\d{2}-\d{4}|\d{2}-\d{2})$")
_OURS = ("local", "scripted")
"""Adapters that load the model themselves: there is no one to give another."""
_SHOWN = 3


def asked_warnings(labels: Mapping[str, str], by_arm: Mapping[str, Sequence[Record]]) -> list[str]:
    """At most one line per arm on who answered, and one on what was not sent."""
    found = []
    for arm, records in by_arm.items():
        found += _other_models(labels[arm], records)
        found += _dropped(labels[arm], records)
    return found


def _other_models(label: str, records: Sequence[Record]) -> list[str]:
    names = _distinct(name for record in records for name in _answered(record))
    asked = _asked(records[0].model) if records else None
    if asked and any(not same_model(asked, name) for name in names):
        return [f"{label}: asked for {asked!r}, answered by {_listed(names)}: the rates are of another model"]
    if len(names) > 1:
        return [f"{label}: answered by {_listed(names)}: the model changed within the run"]
    return []


def _answered(record: Record) -> Sequence[str]:
    only = [record.effective_model] if record.effective_model else []
    return _names(record, "effective_models") or only


def _names(record: Record, key: str) -> list[str]:
    """Of a record that others may have written."""
    given = record.params.get(key)
    return [name for name in given if isinstance(name, str)] if isinstance(given, list | tuple) else []


def _asked(model: str) -> str | None:
    """The name that a provider was asked for; None where that cannot be known."""
    adapter, _, name = model.partition(":")
    return None if adapter in _OURS or "." in adapter or "/" in adapter else name


def _dropped(label: str, records: Sequence[Record]) -> list[str]:
    names = _distinct(name for record in records for name in _names(record, "dropped"))
    return [f"{label}: the model does not take {', '.join(names)}, which was not sent"] if names else []


def same_model(asked: str, answered: str) -> bool:
    """Whether a provider's name for the model that answered is a name of the one asked for.

    Folders and case do not count, and a name without a version may be answered by any version of it; one version is
    never another.
    """
    asked, answered = _short(asked), _short(answered)
    return answered == asked or _VERSION.sub("", answered) == _MOVING.sub("", asked)


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1].lower().removesuffix(".gguf")


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
