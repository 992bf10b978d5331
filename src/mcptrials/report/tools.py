"""Numbers per tool: how often it was called, how often it failed, how long it took, how much it said."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median, quantiles
from typing import Any

from mcptrials.errors import UsageError
from mcptrials.record import Record
from mcptrials.store import Run
from mcptrials.transcript import CallMade


def tool_rows(run: Run, records: Sequence[Record]) -> tuple[list[dict[str, Any]], list[str]]:
    """One row per arm and tool, most called first; and the transcripts that should be there but cannot be read."""
    calls: dict[_Key, list[CallMade]] = {}
    trials: Counter[_Key] = Counter()
    unreadable = []
    for record in records:
        if record.tool_calls:
            try:
                found = run.calls(record)
            except UsageError:
                unreadable.append(record.transcript)
                continue
            for made in found:
                calls.setdefault(_key(record, made), []).append(made)
            trials.update({_key(record, made) for made in found})
    owners = {(server, tool) for _, server, tool, unknown in calls if not unknown}
    several = Counter(tool for _, tool in owners)
    rows = [_row(_name(key, several), key[0], made) | {"trials": trials[key]} for key, made in calls.items()]
    return sorted(rows, key=lambda row: (-row["calls"], row["name"])), unreadable


_Key = tuple[str, str | None, str, bool]
"""Arm, server, tool, and whether the model was shown none of that name, which a renamed tool may have."""


def _key(record: Record, made: CallMade) -> _Key:
    unknown = made.call.unknown_tool
    return record.arm, None if unknown else made.call.server, made.call.tool, unknown


def _name(key: _Key, servers: Mapping[str, int]) -> str:
    """A tool's name, with its server's where several have one of that name."""
    _, server, tool, unknown = key
    return f"{server}/{tool}" if servers[tool] > 1 and not unknown else tool


def _row(name: str, arm: str, made: Sequence[CallMade]) -> dict[str, Any]:
    answers = [each.answer for each in made if each.answer]
    times = [answer.ms for answer in answers if answer.status in ("ok", "tool_error", "protocol_error")]
    shown = [len(answer.shown) for answer in answers if answer.status == "ok"]
    return {
        "name": name,
        "arm": arm,
        "calls": len(made),
        "sent": sum(each.sent for each in made),
        "errors": sum(answer.status != "ok" for answer in answers),
        "tool_errors": sum(answer.status == "tool_error" for answer in answers),
        "argument_errors": sum(each.call.argument_error is not None for each in made),
        "rejected_though_valid": sum(_rejected_though_valid(each) for each in made),
        "unknown": any(each.call.unknown_tool for each in made),
        "ms_p50": median(times) if times else None,
        "ms_p95": _p95(times),
        "result_tokens_p50": None,
        "result_chars_p50": median(shown) if shown else None,
    }


def _rejected_though_valid(made: CallMade) -> bool:
    """An error on arguments that fit the schema: what the schema does not say."""
    failed = made.answer is not None and made.answer.status in ("tool_error", "protocol_error")
    return failed and made.call.argument_error is None and not made.call.unknown_tool


def _p95(times_ms: Sequence[float]) -> float | None:
    if len(times_ms) < 2:  # noqa: PLR2004 - a quantile needs two points
        return times_ms[0] if times_ms else None
    return quantiles(times_ms, n=20, method="inclusive")[-1]
