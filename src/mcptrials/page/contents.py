"""Contents: everything that a page says, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
MAX_TRIALS = 5_000
"""Rows of trials in the data of a page; the run's folder has all."""
_COUNTS = (
    *("tool_calls", "tool_errors", "unknown_tools", "argument_errors"),
    *("input_tokens", "output_tokens", "duration_ms", "cost_usd"),
)


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
    compared = compare_sides(chosen, allow, question) if chosen else None
    named = dict(zip(_names(runs), runs, strict=True))
    records = {name: _ordered(run) for name, run in named.items()}
    readable = [name for name, run in named.items() if _is_shown(run, shown)]
    summaries = [{**summarise(run), "run_id": name, "run_dir": name, "trial_dirs": []} for name, run in named.items()]
    comparison = compared and _to_send(compared, _by_folder(named, chosen), told=len(readable) == len(runs))
    trials = [_trial(name, record) for name in named for record in records[name]]
    data = {
        "schema_version": SCHEMA_VERSION,
        "product": f"mcptrials {__version__}",
        "headline": headline_of(summaries, comparison),
        "summaries": summaries,
        "comparison": comparison,
        "not_compared": refused,
        "origins": [{**origin_of(run), "run_id": name} for name, run in named.items()],
        "trials": trials[:MAX_TRIALS],
        "trials_left_out": max(0, len(trials) - MAX_TRIALS),
        "transcripts": shown if readable else "none",
        "held_out": any(run.manifest["split"] == "held_out" for run in runs),
    }
    return Contents(data, read_transcripts([(name, named[name], records[name]) for name in readable], comparison))


def _names(runs: Sequence[Run]) -> list[str]:
    """Run ids; of two runs that chose the same one, the second is marked."""
    ids = [run.run_id for run in runs]
    return [each if each not in ids[:index] else f"{each} ({index + 1})" for index, each in enumerate(ids)]


def _by_folder(named: Mapping[str, Run], sides: Sequence[Side]) -> dict[str, str]:
    """The names of runs by their folders, as each side calls its own."""
    names = {run.folder.resolve(): name for name, run in named.items()}
    return {str(side.run.folder): names[side.run.folder.resolve()] for side in sides}


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
    """The records of planned trials, by task, number and arm."""
    tasks = {task_id: index for index, task_id in enumerate(run.tasks)}
    arms = {arm: index for index, arm in enumerate(run.arms)}
    planned = {(each.task_id, each.arm, each.number) for each in run.planned()}
    mine = [record for record in run.records() if (record.task_id, record.arm, record.trial) in planned]
    return sorted(mine, key=lambda record: (tasks[record.task_id], record.trial, arms[record.arm]))


def _to_send(document: Mapping[str, Any], names: Mapping[str, str], *, told: bool) -> dict[str, Any]:
    """The comparison as others may see it.

    Where folders lie on this machine is no business of who is sent the page, nor is what servers said where transcripts
    are not shown.
    """
    return {**document, "comparisons": [_one_to_send(each, names, told=told) for each in document["comparisons"]]}


def _one_to_send(found: Mapping[str, Any], names: Mapping[str, str], *, told: bool) -> dict[str, Any]:
    changed = [
        {**row, "transcripts": {side: _relative(path, names) for side, path in row["transcripts"].items()}}
        for row in found["changed_tasks"]
    ]
    nothing = {} if told else {"errors": {**found["errors"], "only_a": [], "only_b": []}}
    sides = {side: {**found[side], **_place(found[side], names)} for side in ("a", "b")}
    return {**found, **sides, "changed_tasks": changed, **nothing}


def _place(side: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    name = names[side["run_dir"]]
    return {"run_id": name, "run_dir": name, "name": f"{name}:{side['variant']}"}


def _relative(path: str, names: Mapping[str, str]) -> str:
    """A file of a run, below the run's name."""
    folder = next(folder for folder in names if path.startswith(f"{folder}/"))
    return names[folder] + path.removeprefix(folder)


def _trial(name: str, record: Record) -> dict[str, Any]:
    keys = ("task_id", "arm", "trial", "verdict", "cause", "blame", *_COUNTS)
    return {"run_id": name, **{key: getattr(record, key) for key in keys}, "transcript": f"{name}/{record.transcript}"}
