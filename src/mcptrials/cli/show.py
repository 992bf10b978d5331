"""`mcptrials show`: a run's tables, or one trial's transcript."""

from typing import Any

import click

from mcptrials.cli.outcome import Outcome, end
from mcptrials.cli.screen import common_options, output
from mcptrials.cli.tables import print_summary
from mcptrials.cli.transcript_page import print_transcript
from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.record import Record
from mcptrials.report import summarise
from mcptrials.source import nearest
from mcptrials.store import Run, find_run, log_look


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.argument("trial_name", metavar="[TRIAL]", required=False)
@click.option("--full", is_flag=True, help="Do not shorten long results.")
@common_options
def show(run_name: str | None, trial_name: str | None, **flags: Any) -> None:
    """Show a run, or one trial of it.

    RUN is a run's id or folder, by default the newest. TRIAL is a task id, with `-N` for its Nth trial.
    """
    run = _find(run_name, flags)
    if run.manifest["split"] == "held_out":
        log_look(run.folder.parent.parent, "show", run.run_id)
    if trial_name is None:
        summary = summarise(run)
        if not flags["as_json"]:
            print_summary(output(), summary)
        end(Outcome(summary, warnings=tuple(summary["warnings"])))
    record = find_trial(run, trial_name)
    transcript = run.transcript(record)
    if not flags["as_json"]:
        print_transcript(output(), run, record, transcript, full=flags["full"])
    events = [event.model_dump(mode="json") for event in transcript.events]
    end(Outcome({"record": record.model_dump(mode="json"), "events": events}))


def _find(run_name: str | None, flags: dict[str, Any]) -> Run:
    """A run given by its folder needs no project."""
    if run_name is not None:
        try:
            return Run.load(run_name)
        except UsageError:
            if "/" in run_name:
                raise
    return find_run(Project.load(flags["project_file"], flags["settings"]).runs_dir, run_name)


def find_trial(run: Run, name: str) -> Record:
    """A record by `task`, `task-N`, or the name of its transcript; of several arms the first.

    Raises:
        UsageError: there is none.
    """
    records = run.records()
    for record in records:
        names = (
            record.task_id,
            f"{record.task_id}-{record.trial}",
            record.transcript.split("/")[-1].split(".jsonl")[0],
        )
        if name in names:
            return record
    known = [f"{record.task_id}-{record.trial}" for record in records]
    raise UsageError(f"the run has no trial {name!r}", where=run.run_id, hint=nearest(name, known))
