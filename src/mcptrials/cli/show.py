"""`mcptrials show`: a run's tables, or one trial's transcript."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mcptrials.cli.outcome import Outcome, end
from mcptrials.cli.run_names import project_dir, run_by_name
from mcptrials.cli.screen import common_options, output
from mcptrials.cli.tables import print_summary
from mcptrials.cli.transcript_page import print_transcript
from mcptrials.errors import UsageError
from mcptrials.record import Record
from mcptrials.report import summarise
from mcptrials.source import nearest
from mcptrials.store import Run, log_look


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.argument("trial_name", metavar="[TRIAL]", required=False)
@click.option("--full", is_flag=True, help="Do not shorten long results.")
@click.option("--grades", type=click.IntRange(min=0), metavar="N", help="Older grades; 0 are those of the run itself.")
@common_options
def show(run_name: str | None, trial_name: str | None, **flags: Any) -> None:
    """Show a run, or one trial of it.

    RUN is a run's id, its beginning or its folder, by default the newest. TRIAL is a task id (its first trial that
    failed, else its first), with `-N` for its Nth trial.
    """
    run = run_by_name(run_name, flags)
    if flags["grades"] is not None:
        run = Run.load(run.folder, flags["grades"])
    if run.manifest["split"] == "held_out":
        log_look(project_dir(run, flags), "show", run.run_id)
    if trial_name is None:
        summary = summarise(run)
        if not flags["as_json"]:
            print_summary(output(), summary)
        end(Outcome(summary, warnings=tuple(summary["warnings"])))
    record = find_trial(run, trial_name)
    transcript = run.transcript(record)
    if not flags["as_json"]:
        print_transcript(output(), run, record, transcript, full=flags["full"])
    events = [event.model_dump() for event in transcript.events]
    end(Outcome({"record": record.model_dump(), "events": events}))


def find_trial(run: Run, name: str) -> Record:
    """A record by `task`, `task-N`, or the name of its transcript; of several the first that failed, else the first.

    Raises:
        UsageError: there is none.
    """
    records, arms = run.records(), {arm: index for index, arm in enumerate(run.arms)}
    found = next((found for names in _NAMES if (found := [each for each in records if names(each) == name])), None)
    if found is None:
        hint = nearest(name, {record.task_id for record in records})
        raise UsageError(f"the run has no task or trial {name!r}", where=run.run_id, hint=hint)
    return min(found, key=lambda record: (record.verdict != "failed", record.trial, arms.get(record.arm, 0)))


_NAMES: tuple[Callable[[Record], str], ...] = (
    lambda record: record.task_id,
    lambda record: f"{record.task_id}-{record.trial}",
    lambda record: Path(record.transcript).stem,
)
"""How a trial may be called. The task's own id comes first: one may read like the trial of another."""
