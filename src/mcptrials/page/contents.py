"""Contents: everything that a page says, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcptrials import __version__
from mcptrials.comparison import Question, Side, compare_sides, sides_of
from mcptrials.comparison.conditions import check_conditions
from mcptrials.comparison.pairing import pair
from mcptrials.errors import UsageError
from mcptrials.page.headline import headline_of
from mcptrials.page.origin import origin_of
from mcptrials.page.transcripts import Reading, read_transcripts
from mcptrials.record import SCHEMA_VERSION, Record
from mcptrials.report import summarise
from mcptrials.store import Run

Shown = Literal["train", "held_out", "none"]
"""Whose transcripts a page holds: of the training split, of held-out tasks too, or none."""
_COUNTS = ("tool_calls", "tool_errors", "input_tokens", "output_tokens", "duration_ms", "cost_usd")


@dataclass(frozen=True)
class Contents:
    """A page: its data, and what is read beside them."""

    data: dict[str, Any]
    """What is embedded: summaries, comparison, what was run, and one row per trial."""
    reading: Reading


def contents_of(
    runs: Sequence[Run], sides: Sequence[Side], allow: Sequence[str], asked: tuple[Question, Shown]
) -> Contents:
    """What a page says of one run, or of two sides of one or two runs.

    Args:
        runs: one or two.
        sides: the two that are compared; with none, the arms of a single run are, as far as they can be.
        allow: conditions that may differ.
        asked: what the comparison is about, and whose transcripts are shown.

    Raises:
        UsageError: the two sides cannot be compared.
    """
    question, shown = asked
    refused: list[str] = []
    chosen = list(sides) or _comparable(runs[0], allow, refused)
    comparison = compare_sides(chosen, allow, question) if chosen else None
    readable = [run for run in runs if _is_shown(run, shown)]
    records = {run.run_id: _ordered(run) for run in runs}
    summaries = [_without_places(summarise(run)) for run in runs]
    data = {
        "schema_version": SCHEMA_VERSION,
        "product": f"mcptrials {__version__}",
        "headline": headline_of(summaries, comparison),
        "summaries": summaries,
        "comparison": comparison and _to_send(comparison, runs, told=len(readable) == len(runs)),
        "not_compared": refused,
        "origins": [origin_of(run) for run in runs],
        "trials": [_trial(run, record) for run in runs for record in records[run.run_id]],
        "transcripts": shown if readable else "none",
        "held_out": any(run.manifest["split"] == "held_out" for run in runs),
    }
    return Contents(data, read_transcripts([(run, records[run.run_id]) for run in readable], comparison))


def _comparable(run: Run, allow: Sequence[str], refused: list[str]) -> list[Side]:
    """The first arm of a run and those that can be compared with it; of the others, why not."""
    baseline, *others = sides_of(run)
    found = [baseline]
    for each in others:
        try:
            check_conditions(baseline, each, allow)
        except UsageError as exc:
            refused.append(f"{each.arm.label} is not compared with {baseline.arm.label}: {exc.what}")
            continue
        if pair(baseline, each).paired:
            found.append(each)
        else:
            refused.append(f"{each.arm.label} is not compared with {baseline.arm.label}: no task was tried by both")
    return found if len(found) > 1 else []


def _is_shown(run: Run, shown: Shown) -> bool:
    return shown == "held_out" or (shown == "train" and run.manifest["split"] == "train")


def _ordered(run: Run) -> list[Record]:
    """A trial's record of the plan, by task, number and arm."""
    places = {task_id: index for index, task_id in enumerate(run.tasks)}
    arms = {arm: index for index, arm in enumerate(run.arms)}
    mine = [record for record in run.records() if record.task_id in places and record.arm in arms]
    return sorted(mine, key=lambda record: (places[record.task_id], record.trial, arms[record.arm]))


def _without_places(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Where folders lie on this machine is no business of who is sent the page."""
    return {**summary, "run_dir": summary["run_id"], "trial_dirs": []}


def _to_send(document: Mapping[str, Any], runs: Sequence[Run], *, told: bool) -> dict[str, Any]:
    """The comparison without folders of this machine, and without what servers said where that is not shown."""
    folders = [f"{run.folder.parent}/" for run in runs]
    return {**document, "comparisons": [_one_to_send(each, folders, told=told) for each in document["comparisons"]]}


def _one_to_send(found: Mapping[str, Any], folders: Sequence[str], *, told: bool) -> dict[str, Any]:
    changed = [
        {**row, "transcripts": {side: _relative(path, folders) for side, path in row["transcripts"].items()}}
        for row in found["changed_tasks"]
    ]
    nothing = {} if told else {"errors": {**found["errors"], "only_a": [], "only_b": []}}
    sides = {side: {**found[side], "run_dir": Path(found[side]["run_dir"]).name} for side in ("a", "b")}
    return {**found, **sides, "changed_tasks": changed, **nothing}


def _relative(path: str, folders: Sequence[str]) -> str:
    return next((path.removeprefix(folder) for folder in folders if path.startswith(folder)), Path(path).name)


def _trial(run: Run, record: Record) -> dict[str, Any]:
    keys = ("task_id", "arm", "trial", "verdict", "cause", "blame", *_COUNTS, "transcript")
    return {"run_id": run.run_id, **{key: getattr(record, key) for key in keys}}
