"""`mcptrials grade`: a run's trials graded again, and which verdicts changed."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from mcptrials.cli.outcome import DONE, INCOMPLETE, Outcome, end, keep_secret
from mcptrials.cli.screen import common_options, from_here, messages, output, program, safe
from mcptrials.counting import counted
from mcptrials.encoding import dump_text
from mcptrials.project import Project
from mcptrials.report import summarise
from mcptrials.runner.regrading import Progress, Regraded, regrade
from mcptrials.shares import percent
from mcptrials.store import Run, find_run, log_look
from mcptrials.store.disk import write_whole, writing

_SHOWN = 20
"""Flips on the screen; all are in the document."""


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--only", metavar="EXPR", help="Tasks by id, glob or field; the others keep their grades.")
@click.option("--tasks", multiple=True, metavar="FILE", help="Task files instead of the project's.")
@common_options
def grade(run_name: str | None, only: str | None, tasks: tuple[str, ...], **flags: Any) -> None:
    """Grade a run again by the project's present graders: no model is asked, no server is started.

    RUN is a run's id, its beginning or its folder, by default the newest. The new grades are added to the run and count
    from then on; the old ones are kept and shown by `mcptrials show RUN --grades N`.
    """
    given = [f"tasks={dump_text([str(Path(each).absolute()) for each in tasks])}"] if tasks else []
    project = Project.load(flags["project_file"], [*flags["settings"], *given])
    keep_secret(dict(project.secrets))
    run = _find(project, run_name)
    if run.manifest["split"] == "held_out":
        log_look(project.dir, "grade", run.run_id)
    rates = _rates(summarise(run))
    with redirect_stdout(sys.stderr), _progress(flags) as progress:  # what the user's own graders print
        found = regrade(project, run, only, progress)
    summary = summarise(found.run)
    with writing(run.folder):
        write_whole(run.folder / "summary.json", dump_text(summary).encode() + b"\n")
    data = _data(found, rates, summary)
    if not flags["as_json"]:
        _print(output(), data if not flags["quiet"] else data | {"flips": [], "not_graded": []})
    end(_outcome(found, data))


def _find(project: Project, run_name: str | None) -> Run:
    return find_run(project.runs_dir, run_name)


@contextmanager
def _progress(flags: Mapping[str, Any]) -> Iterator[Progress | None]:
    console = messages()
    if flags["quiet"] or flags["as_json"] or not console.is_terminal:
        yield None
        return
    with Bar(TextColumn("grading"), BarColumn(), MofNCompleteColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _rates(summary: Mapping[str, Any]) -> dict[str, float | None]:
    return {row["arm"]: row["rate"] for row in summary["arms"]}


def _data(found: Regraded, rates: Mapping[str, float | None], summary: Mapping[str, Any]) -> dict[str, Any]:
    arms = [
        {"arm": row["arm"], "label": row["label"], "rate_before": rates.get(row["arm"]), "rate": row["rate"]}
        for row in summary["arms"]
    ]
    return {
        "run_id": found.run.run_id,
        "run_dir": str(found.run.folder),
        "grades": found.run.grades,
        "trials": found.trials,
        "kept": found.kept,
        "grades_kept": found.grades_kept,
        "arms": arms,
        "flips": list(found.flips),
        "not_graded": [{"reason": reason, "trials": count} for reason, count in found.not_graded.items()],
        "warnings": list(found.warnings),
        "max_invalid": found.run.manifest["max_invalid"],
    }


def _print(console: Console, data: Mapping[str, Any]) -> None:
    for flip in data["flips"][:_SHOWN]:
        style = {"passed": "green", "failed": "red"}.get(flip["after"], "yellow")
        change = f"{flip['before']} -> {_word(flip['after'])}"
        console.print(safe(f"{flip['task_id']} {flip['trial']}: {change}{_cause(flip)}", style))
        for each in flip["graders"]:
            evidence = f" ({each['evidence']})" if each["evidence"] else ""
            console.print(safe(f"    {each['grader']}: {each['reason']}{evidence}", "dim"))
    if len(data["flips"]) > _SHOWN:
        console.print(safe(f"... and {len(data['flips']) - _SHOWN} more; all with --json"))
    for row in data["not_graded"]:
        console.print(safe(f"! {row['trials']} not graded: {row['reason']}", "yellow"))
    for warning in data["warnings"]:
        console.print(safe(f"! {warning}", "yellow"))
    for row in data["arms"]:
        console.print(safe(f"{row['label']}: {percent(row['rate_before'])} -> {percent(row['rate'])}", "bold"))
    if data["grades_kept"]:
        grades = counted(data["grades_kept"], "grade")
        console.print(safe(f"{grades} kept: what was graded is gone, and the grader is the same"))
    kept = f", {data['kept']} as graded before" if data["kept"] else ""
    flips = len(data["flips"])
    console.print(safe(f"{counted(data['trials'], 'trial')} graded again{kept}; {counted(flips, 'verdict')} changed"))
    run_dir = from_here(data["run_dir"])
    console.print(safe(f"old grades:  {program()} show {run_dir} --grades {data['grades'] - 1}"))


def _word(verdict: str) -> str:
    return "not scored" if verdict == "invalid" else verdict


def _cause(flip: Mapping[str, Any]) -> str:
    return f" ({flip['cause_after']})" if flip["cause_after"] else ""


def _outcome(found: Regraded, data: Mapping[str, Any]) -> Outcome:
    """Where the graders could not run there is no result."""
    if found.share_not_graded <= data["max_invalid"] and sum(found.not_graded.values()) < found.trials:
        return Outcome(data, DONE, tuple(found.warnings))
    count = sum(found.not_graded.values())
    what = f"{count} of {counted(found.trials, 'trial')} could not be graded"
    hint = f"the grades before are kept: {program()} show {from_here(data['run_dir'])} --grades {data['grades'] - 1}"
    return Outcome(data, INCOMPLETE, tuple(found.warnings), {"what": what, "where": None, "hint": hint})
