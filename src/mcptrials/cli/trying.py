"""`mcptrials try`: one change against what is there."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from mcptrials.cli.comparison_page import print_comparison
from mcptrials.cli.outcome import DONE, INCOMPLETE, Outcome, end, keep_secret
from mcptrials.cli.run import what_helps, why_incomplete, written_summary
from mcptrials.cli.screen import common_options, from_here, messages, output, program, safe
from mcptrials.cli.trying_progress import TryingProgress
from mcptrials.comparison import Question, compare_sides, sides_of
from mcptrials.errors import UsageError
from mcptrials.project import DEFAULT_FILE, Project
from mcptrials.redaction import Redactor
from mcptrials.runner import RunOptions, RunResult, Silent
from mcptrials.runner import run as run_project
from mcptrials.runner.selection import select_models
from mcptrials.trying import Change, refuse_more_arms, two_armed

SOME_COPIES = 0.5
"""With more of them, trials cannot be the unit of a test."""


@click.command("try")
@click.option("--overrides", metavar="FILE", help="What models are told instead (default overrides.yaml).")
@click.option("--server", metavar="[NAME=]COMMAND", help="The changed server's command.")
@click.option("--base", metavar="VARIANT", help="The variant that is changed (default the first).")
@click.option("--resume", metavar="RUN", help="Go on with a try that was stopped, with the same change.")
@click.option("--only", metavar="EXPR", help="Tasks by id, glob or field, as in `run`.")
@click.option("--model", "models", multiple=True, metavar="M", help="Use this model instead of the project's.")
@click.option("--trials", type=click.IntRange(min=1), metavar="N", help="Trials per task and arm.")
@click.option("--yes", is_flag=True, help="Do not ask before paid models are used.")
@common_options
def try_(**flags: Any) -> None:
    """Try a change: is it better, worse, or can that not be told?

    Edit overrides.yaml, or give the changed server's command with --server. What is there and the change are run side
    by side, block by block, on the tasks of the training split; the baseline is never an old one.
    """
    project = Project.load(flags["project_file"], flags["settings"])
    keep_secret(dict(project.secrets))
    project = replace(project, config=select_models(project.config, flags["models"]))
    refuse_more_arms(project.config)
    project = two_armed(project, Change(flags["overrides"], flags["server"], flags["base"]))
    options = RunOptions(
        split=None if flags["resume"] else "train",
        only=flags["only"],
        models=flags["models"],
        trials=flags["trials"],
        resume=flags["resume"],
    )
    redactor = Redactor(project.secrets)
    flags |= {"settings": [redactor.text(setting) for setting in flags["settings"]]}
    if flags["quiet"] or flags["as_json"]:
        silent = Silent()
        end(_report(run_project(project, options, silent), flags, silent.warnings))
    with TryingProgress(messages(), project, ask=not flags["yes"] and sys.stdin.isatty()) as progress:
        result = run_project(project, options, progress)
    end(_report(result, flags, progress.warnings))


def _report(result: RunResult, flags: Mapping[str, Any], warnings: Sequence[str]) -> Outcome:
    """The comparison on the screen or in the document, and how the command ends."""
    summary = written_summary(result.run, warnings)
    sides = sides_of(result.run)
    problem: str | None = None
    data: dict[str, Any] = {key: summary[key] for key in ("run_id", "run_dir", "complete", "totals")}
    try:
        found = compare_sides(sides, (), Question())
    except UsageError as exc:
        data |= {"comparisons": []}
        problem = exc.what
    else:
        data |= found
        if not flags["as_json"]:
            _print(found, summary)
    told = tuple(
        dict.fromkeys([*summary["warnings"], *(text for each in data["comparisons"] for text in each["warnings"])])
    )
    if summary["complete"] and problem is None:
        return Outcome(data, DONE, told)
    what = "stopped before the end" if result.stopped else why_incomplete(summary)
    hint = what_helps(result, summary, _again(flags, str(result.run.folder)))
    error = {"what": problem or what, "where": None, "hint": hint}
    return Outcome(data, INCOMPLETE, told, error)


def _print(found: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    screen = output()
    print_comparison(screen, found)
    for line in _next_steps(found["comparisons"][0], from_here(summary["run_dir"])):
        screen.print(safe(line))


def _next_steps(found: Mapping[str, Any], run_dir: str) -> Iterator[str]:
    """What a person would do with the verdict."""
    if found["verdict"] == "better":
        yield "next: keep the change; before a release, look at the held-out tasks once: mcptrials run --split held_out"
    elif found["verdict"] == "worse":
        yield "next: read the transcripts of the tasks that got worse, and change something else"
    else:
        yield "next: add tasks, or --trials, or change more at once"
        if (found["a"]["share_copies"] or 0) + (found["b"]["share_copies"] or 0) < SOME_COPIES:
            yield f"of exactly these tasks it says: {program()} compare {run_dir} --scope these-tasks"
    yield f"run: {run_dir}"


def _again(flags: Mapping[str, Any], folder: str) -> str:
    """What goes on with the try from this directory: the same change to the same project."""
    words = [program(), "try", "--resume", from_here(folder)]
    for name in ("overrides", "server", "base"):
        if flags[name] is not None:
            words += [f"--{name}", flags[name]]
    for model in flags["models"]:
        words += ["--model", model]
    if flags["project_file"] != DEFAULT_FILE:
        words += ["--project", flags["project_file"]]
    for setting in flags["settings"]:
        words += ["--set", setting]
    return shlex.join(words)
