"""Telling: what a comparison says of its sides beside its tables, as lines for any page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcptrials import excerpt
from mcptrials.record import NO_SUCH_TOOL
from mcptrials.shares import percent

Row = Mapping[str, Any]
SHOWN = 8
"""Tools named in a line; the document has all."""
_NAME = 80
_TOLD = 0.005
"""Shares that differ by less read alike."""


def side_names(found: Row) -> tuple[str, str]:
    """What tells the two sides apart, and no more."""
    a, b = found["a"], found["b"]
    if a["run_id"] == b["run_id"]:
        key = "variant" if a["variant"] != b["variant"] else "label" if a["label"] != b["label"] else "arm"
    else:
        key = "run_id" if a["variant"] == b["variant"] else "name"
    return a[key], b[key]


def behaviour_lines(found: Row) -> Iterator[str]:
    """What models call first, and which of their calls go wrong."""
    yield from _first_calls(found["first_calls"])
    yield from _wrong_calls(found["wrong_calls"])


def _first_calls(first: Row) -> Iterator[str]:
    a, b = first["a"], first["b"]
    if a["wrong"] is not None and b["wrong"] is not None and a["wrong"] + b["wrong"]:
        yield f"first call to no expected tool: {percent(a['wrong'])} → {percent(b['wrong'])}"
    shares = [(name, a["shares"].get(name, 0.0), b["shares"].get(name, 0.0)) for name in {**a["shares"], **b["shares"]}]
    if moved := [each for each in shares if abs(each[2] - each[1]) > _TOLD]:
        yield f"first calls: {_some([f'{_short(name)} {percent(old)} → {percent(new)}' for name, old, new in moved])}"


def _wrong_calls(wrong: Row) -> Iterator[str]:
    """Nothing of what happened on neither side."""
    a, b = wrong["a"], wrong["b"]
    if a["unknown_tools"]["trials"] + b["unknown_tools"]["trials"]:
        counts = [(name, a["names"].get(name, 0), b["names"].get(name, 0)) for name in {**a["names"], **b["names"]}]
        counts.sort(key=lambda each: -max(each[1:]))
        names = _some([f"{_short(name)} in {old} → {new}" for name, old, new in counts])
        yield f"calls of tools that are not there: {_of_trials(a, b, 'unknown_tools')}{f': {names}' if names else ''}"
    if a["argument_errors"]["trials"] + b["argument_errors"]["trials"]:
        yield f"calls whose arguments do not fit the schema: {_of_trials(a, b, 'argument_errors')}"


def _of_trials(a: Row, b: Row, name: str) -> str:
    return f"{percent(a[name]['share'])} → {percent(b[name]['share'])} of trials"


def _short(name: str) -> str:
    """Names of tools that do not exist are as long as a model likes."""
    own = name.removesuffix(NO_SUCH_TOOL)
    return excerpt.beginning(own, _NAME) + name[len(own) :]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
