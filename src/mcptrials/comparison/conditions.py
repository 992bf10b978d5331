"""What two sides must have in common, so that a difference can be put down to the server."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from mcptrials import excerpt
from mcptrials.comparison.side import Side
from mcptrials.encoding import dump_text
from mcptrials.errors import UsageError
from mcptrials.source import nearest

Field = Literal["model", "effective_model", "host", "judges", "limits", "policies"]
SHOWN = 120


@dataclass(frozen=True)
class Difference:
    """A condition that differs."""

    field: str
    a: Any
    b: Any

    def document(self) -> dict[str, Any]:
        return {"field": self.field, "a": self.a, "b": self.b}


def check_conditions(a: Side, b: Side, allow: Collection[str]) -> list[Difference]:
    """The conditions that differ and may.

    Raises:
        UsageError: one differs that may not; names it.
    """
    for name in allow:
        if name not in get_args(Field):
            raise UsageError(f"there is no condition {name!r} to allow", hint=nearest(name, get_args(Field)))
    mine, other = _conditions(a), _conditions(b)
    found = [Difference(each, mine[each], other[each]) for each in mine if _differs(each, mine[each], other[each])]
    for each in found:
        if each.field not in allow:
            what = f"{each.field} differs: {_shown(each.a, each.b)} in {a.name}, {_shown(each.b, each.a)} in {b.name}"
            raise UsageError(what, hint=f"compare equal conditions, or say --allow {each.field}")
    return found


def _conditions(side: Side) -> dict[str, Any]:
    arm, records = side.arm, side.records
    servers = side.stated("servers")
    return {
        "model": {"model": arm.model, **arm.model_settings},
        "effective_model": sorted({each.effective_model for each in records if each.effective_model}),
        "host": {"host": arm.host, "versions": sorted({each.agent_harness for each in records}), **arm.host_settings},
        "judges": side.stated("judges") or [],
        "limits": side.stated("limits"),
        "policies": _policies(servers) if isinstance(servers, Mapping) else None,
    }


def _policies(servers: Mapping[str, Any]) -> dict[str, Any]:
    """How tools are shown to the model in every arm of a run; what a variant changes of it is what is compared."""
    return {
        name: {key: server[key] for key in ("tools", "writes", "on_invalid_tool") if key in server}
        for name, server in servers.items()
        if isinstance(server, Mapping)
    }


def _differs(field: str, a: Any, b: Any) -> bool:
    """What a run does not say differs from nothing; a model that nobody named (a script's) neither."""
    if field == "effective_model" and not (a and b):
        return False
    if field == "host" and not (a["versions"] and b["versions"]):
        a, b = ({key: each[key] for key in each if key != "versions"} for each in (a, b))
    if field == "policies" and a is not None and b is not None:
        shared = a.keys() & b.keys()
        return any(a[name] != b[name] for name in shared)
    return a is not None and b is not None and a != b


def _shown(value: Any, other: Any) -> str:
    """Only what differs, of mappings."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        value = {key: each for key, each in value.items() if key not in other or other[key] != each}
    return excerpt.beginning(dump_text(value), SHOWN)


def concurrency(a: Side, b: Side) -> dict[str, Any]:
    """Whether both sides were tried at the same time: otherwise what drifts meanwhile is part of the difference."""
    if a.run.folder.resolve() == b.run.folder.resolve():
        return {"concurrent": True, "how": "interleaved in one run", "gap_hours": 0.0}
    spans = [_span(a), _span(b)]
    if None in spans:
        return {"concurrent": None, "how": "times are not recorded", "gap_hours": None}
    (begin_a, end_a), (begin_b, end_b) = (each for each in spans if each)
    gap = max((begin_b - end_a).total_seconds(), (begin_a - end_b).total_seconds()) / 3600
    if gap <= 0:
        return {"concurrent": True, "how": "two runs at the same time", "gap_hours": 0.0}
    return {"concurrent": False, "how": f"two runs, {_hours(gap)} apart", "gap_hours": gap}


def _hours(hours: float) -> str:
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"  # noqa: PLR2004


def _span(side: Side) -> tuple[datetime, datetime] | None:
    try:
        times = [datetime.fromisoformat(each.started_at) for each in side.records if each.started_at]
        return (min(times), max(times)) if times else None
    except (ValueError, TypeError):
        return None
