"""Transcripts: which trials can be read on a page, how much of them, and which to read first."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from mcptrials import excerpt
from mcptrials.errors import UsageError
from mcptrials.events import PromptGiven
from mcptrials.page.dialogue import Block, Briefing, blocks_of, briefing_of, graded
from mcptrials.record import Record
from mcptrials.store import Run
from mcptrials.visible import plain

BUDGET_BYTES = 1_800_000
"""Of all transcripts of a page, which is to be sent by mail."""
LIMITS = (20_000, 4_000, 1_000)
"""Characters shown of one text: the first at which every transcript fits, else the last."""
MAX_BLOCKS = 1_000
"""Of one trial; of more the beginning and the end."""
_FULL = 0.9
"""Of the budget: then no further transcript is looked into."""
_MARKUP_BYTES = 130
"""Around a block."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")

Trials = Sequence[tuple[str, Run, Sequence[Record]]]
"""By run: its name on the page, and the trials' records."""


@dataclass(frozen=True, eq=False)
class Told:
    """One trial that can be read."""

    run_id: str
    record: Record
    anchor: str
    blocks: tuple[Block, ...]
    briefing: int | None
    """Which of the reading's briefings; None where the model was told nothing."""


@dataclass(frozen=True)
class Reading:
    """The transcripts of a page."""

    told: tuple[Told, ...] = ()
    briefings: tuple[Briefing, ...] = ()
    first: tuple[tuple[str, str, str], ...] = ()
    """Which to read first: why, name and anchor."""
    left_out: int = 0
    """Trials whose transcripts would make the page too large."""
    unreadable: int = 0

    @property
    def anchors(self) -> dict[str, str]:
        """By transcript, as the data of the page name it."""
        return {_path(each.run_id, each.record): each.anchor for each in self.told}


def read_transcripts(trials: Trials, comparison: Mapping[str, Any] | None) -> Reading:
    """As many as fit, those first that say most; shown in the order of the plan."""
    ordered = [(name, run, record) for name, run, records in trials for record in records]
    flips = _flip_paths(comparison)
    by_worth = sorted(
        range(len(ordered)), key=lambda index: (_worth(ordered[index][0], ordered[index][2], flips), index)
    )
    briefings: dict[Briefing, int] = {}
    told: dict[int, Told] = {}
    used = unreadable = 0
    for index in by_worth:
        if used > _FULL * BUDGET_BYTES:
            break
        try:
            found = _told(*ordered[index], briefings)
        except UsageError:
            unreadable += 1
            continue
        cost = _bytes(found.blocks, LIMITS[-1])
        if used + cost <= BUDGET_BYTES:
            told[index] = found
            used += cost
    chosen = _distinct([told[index] for index in sorted(told)])
    limit = next((n for n in LIMITS if sum(_bytes(each.blocks, n) for each in chosen) <= BUDGET_BYTES), LIMITS[-1])
    return Reading(
        tuple(replace(each, blocks=tuple(_cut(block, limit) for block in each.blocks)) for each in chosen),
        tuple(_brief(each, limit) for each in briefings),
        tuple(_first(chosen)),
        left_out=len(ordered) - len(chosen) - unreadable,
        unreadable=unreadable,
    )


def _flip_paths(comparison: Mapping[str, Any] | None) -> set[str]:
    """Transcripts of tasks that flipped."""
    rows = [row for each in (comparison["comparisons"] if comparison else ()) for row in each["changed_tasks"]]
    return {path for row in rows if row["flipped"] for path in row["transcripts"].values()}


def _path(name: str, record: Record) -> str:
    """A transcript as the data of the page name it."""
    return f"{name}/{record.transcript}"


def _worth(name: str, record: Record, flips: Set[str]) -> int:
    """What says most comes first: flips, then failures, then what could not be scored."""
    if _path(name, record) in flips:
        return 0
    return {"failed": 1, "pending": 2, "invalid": 3}.get(record.verdict, 4)


def _told(name: str, run: Run, record: Record, briefings: dict[Briefing, int]) -> Told:
    events = run.transcript(record).events
    briefing = None
    for event in events:
        if isinstance(event, PromptGiven):
            briefing = briefings.setdefault(briefing_of(event), len(briefings))
    blocks = _without_middle([*blocks_of(events), *graded(record)])
    shown = tuple(_cut(block, LIMITS[0]) for block in blocks)
    return Told(name, record, _UNSAFE.sub("_", f"{record.task_id}-{record.trial}-{record.arm}"), shown, briefing)


def _without_middle(blocks: list[Block]) -> list[Block]:
    half = MAX_BLOCKS // 2
    if len(blocks) <= MAX_BLOCKS:
        return blocks
    gap = Block("note", f"{len(blocks) - MAX_BLOCKS:,} more steps are left out here")
    return [*blocks[:half], gap, *blocks[-half:]]


def _distinct(told: Sequence[Told]) -> list[Told]:
    """Anchors of two runs may be the same."""
    seen: set[str] = set()
    found = []
    for each in told:
        anchor = each.anchor if each.anchor not in seen else f"{each.anchor}-{len(seen)}"
        seen.add(anchor)
        found.append(replace(each, anchor=anchor))
    return found


def _cut(block: Block, limit: int) -> Block:
    if len(block.text) <= limit and len(block.title) <= limit:
        return block
    size = f" · the first {limit:,} of {len(block.text):,} characters" if len(block.text) > limit else ""
    title = excerpt.beginning(block.title, limit)
    return Block(block.kind, f"{title}{size}", excerpt.beginning(block.text, limit))


def _brief(briefing: Briefing, limit: int) -> Briefing:
    system = None if briefing.system is None else excerpt.beginning(briefing.system, LIMITS[0])
    return Briefing(system, tuple((name, excerpt.beginning(text, limit)) for name, text in briefing.tools))


def _bytes(blocks: Sequence[Block], limit: int) -> int:
    return sum(
        _MARKUP_BYTES + _escaped_bytes(block.title) + _escaped_bytes(_cut(block, limit).text) for block in blocks
    )


def _escaped_bytes(text: str) -> int:
    return len(html.escape(plain(text), quote=False).encode())


def _first(told: Sequence[Told]) -> Iterator[tuple[str, str, str]]:
    """A few trials to begin with, and why."""
    failed = [each for each in told if each.record.verdict == "failed"]
    passes = {(each.record.arm, each.record.task_id) for each in told if each.record.passed}
    sometimes = [each for each in failed if (each.record.arm, each.record.task_id) in passes]
    timed = [each for each in told if each.record.duration_ms is not None]
    picks = {
        "failed, and passes at other times": next(iter(sometimes), None),
        "failed": next((each for each in failed if each not in sometimes), None),
        "longest": max(timed, key=lambda each: each.record.duration_ms or 0, default=None),
        "most calls": max(told, key=lambda each: each.record.tool_calls, default=None),
    }
    several = len({(each.run_id, each.record.arm) for each in told}) > 1
    for each in dict.fromkeys(filter(None, picks.values())):
        why = ", ".join(reason for reason, pick in picks.items() if pick is each)
        of = f" of {each.record.variant}" if several else ""
        yield why, f"{each.record.task_id}, trial {each.record.trial}{of}", each.anchor
