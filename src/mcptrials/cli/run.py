"""`mcptrials run`: the plan, live progress, then the tables."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from mcptrials.cli.outcome import DONE, INCOMPLETE, Outcome, end, keep_secret
from mcptrials.cli.progress import Progress
from mcptrials.cli.screen import common_options, from_here, messages, output, program
from mcptrials.cli.tables import print_summary
from mcptrials.counting import counted
from mcptrials.encoding import dump_text
from mcptrials.project import DEFAULT_FILE, Project
from mcptrials.record import Record
from mcptrials.redaction import Redactor
from mcptrials.report import summarise
from mcptrials.runner import RunOptions, RunResult, Silent
from mcptrials.runner import run as run_project
from mcptrials.store import Run
from mcptrials.store.disk import write_whole, writing


@click.command()
@click.option("--resume", metavar="RUN", help="Go on with a run: only the trials that it still owes.")
@click.option("--only", metavar="EXPR", help="Tasks by id, glob or field: 'issues-*,tag:write,!group:slow'.")
@click.option("--model", "models", multiple=True, metavar="M", help="Use this model instead of the project's.")
@click.option("--trials", type=click.IntRange(min=1), metavar="N", help="Trials per task.")
@click.option("--split", type=click.Choice(["train", "held_out"]), help="Which tasks (default train).")
@click.option("--name", metavar="NAME", help="The run's id; by default the time.")
@click.option("--yes", is_flag=True, help="Do not ask before paid models are used.")
@common_options
def run(**flags: Any) -> None:
    """Run the suite of a project: every task, by every arm, several trials each."""
    project = Project.load(flags["project_file"], flags["settings"])
    options = RunOptions(
        split=flags["split"],
        only=flags["only"],
        models=flags["models"],
        trials=flags["trials"],
        name=flags["name"],
        resume=flags["resume"],
    )
    run_and_report(project, options, flags)


def run_and_report(project: Project, options: RunOptions, flags: dict[str, Any]) -> None:
    """Runs, then prints the tables or the document, and ends with the right exit code."""
    keep_secret(dict(project.secrets))
    redactor = Redactor(project.secrets)
    flags = flags | {"settings": [redactor.text(setting) for setting in flags["settings"]]}
    if flags["quiet"] or flags["as_json"]:
        silent = Silent()
        end(report(run_project(project, options, silent), flags, silent.warnings))
    with Progress(messages(), ask=not flags["yes"] and sys.stdin.isatty()) as progress:
        result = run_project(project, options, progress)
    end(report(result, flags, progress.warnings))


def report(result: RunResult, flags: Mapping[str, Any], warnings: Sequence[str] = ()) -> Outcome:
    """`summary.json`, the tables, and how the command ends.

    Args:
        warnings: what the run's preparation warned of.
    """
    summary = written_summary(result.run, warnings)
    if not flags["as_json"]:
        print_summary(output(), summary)
    if summary["complete"]:
        return Outcome(summary, DONE, tuple(summary["warnings"]))
    what = "stopped before the end" if result.stopped else why_incomplete(summary)
    hint = what_helps(result, summary, _resume_command(result.run.folder, flags))
    error = {"what": what, "where": None, "hint": hint}
    return Outcome(summary, INCOMPLETE, tuple(summary["warnings"]), error)


def what_helps(result: RunResult, summary: Mapping[str, Any], resume: str) -> str:
    """Trials that are owed are played by going on; those that a grader could not judge are graded again."""
    unjudged = [each for each in result.run.records() if (each.verdict, each.blame) == ("invalid", "grader")]
    if not unjudged:
        return f"go on with: {resume}"
    if not all(map(_can_be_graded, unjudged)):
        # Going on refuses tasks that have changed: their trials would not be those that were planned.
        return f"mend what the grader runs or reads, then go on with: {resume}; if the task file changes, run anew"
    again = f"mend the grader, then grade the same trials again: {program()} grade {from_here(str(result.run.folder))}"
    owed = result.stopped or summary["missing"] or len(unjudged) < summary["totals"]["invalid"]
    return f"{again}; for the other trials go on with: {resume}" if owed else again


def _can_be_graded(record: Record) -> bool:
    """Whether what its graders look at is still there: a trial's directory is mostly not, unread state never is."""
    gone = record.trial_dir is None and any(each.type == "command" and each.value is None for each in record.graders)
    return not gone and all(value.error is None for value in record.state.values())


def written_summary(run: Run, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The summary of a run, as it is written to its folder."""
    summary = summarise(run)
    summary["warnings"] = [*warnings, *summary["warnings"]]
    with writing(run.folder):
        write_whole(run.folder / "summary.json", dump_text(summary).encode() + b"\n")
    return summary


def _resume_command(folder: Path, flags: Mapping[str, Any]) -> str:
    """What goes on with the run from this directory: the same project with the same keys replaced."""
    words = [program(), "run", "--resume", from_here(str(folder))]
    if flags["project_file"] != DEFAULT_FILE:
        words += ["--project", flags["project_file"]]
    for setting in flags["settings"]:
        words += ["--set", setting]
    return shlex.join(words)


def why_incomplete(summary: Mapping[str, Any]) -> str:
    """In a line, of a run that went to its end."""
    if summary["missing"]:
        return f"{summary['missing']} of {counted(summary['planned'], 'trial was', 'trials were')} not run"
    unscored = summary["totals"]["invalid"]
    planned = counted(summary["planned"], "trial is", "trials are")
    return f"{unscored} of {planned} not scored, more than max_invalid allows"
