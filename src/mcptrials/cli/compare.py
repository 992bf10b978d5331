"""`mcptrials compare`: two or more arms against a baseline."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, get_args

import click

from mcptrials.cli.comparison_page import print_comparison
from mcptrials.cli.outcome import Outcome, end
from mcptrials.cli.run_names import project_dir, run_by_name
from mcptrials.cli.screen import common_options, output
from mcptrials.comparison import Question, Side, compare_sides, find_sides
from mcptrials.stats import Scope
from mcptrials.store import log_look


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a comparison: what may differ between its sides, and what its verdict is about."""
    for option in (
        click.option(
            "--margin", type=float, metavar="SHARE", help="A difference below it does not matter: 0.05 is 5 points."
        ),
        click.option(
            "--scope",
            type=click.Choice(get_args(Scope)),
            default="tasks-like-these",
            help="What the verdict is about (default tasks-like-these).",
        ),
        click.option(
            "--allow", multiple=True, metavar="FIELD", help="A condition that may differ, such as model or limits."
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("names", metavar="A [B ...]", nargs=-1, required=True)
@question_options
@common_options
def compare(names: tuple[str, ...], **flags: Any) -> None:
    """Compare runs, or arms of runs, with the first: B minus A.

    Each is RUN, a run's id, its beginning or its folder, or RUN:ARM with an arm's variant, id or label. Of a single
    RUN all arms are compared with its first.
    """
    sides = find_sides(names, partial(run_by_name, flags=flags))
    log_looks(sides, flags)
    found = compare_sides(sides, flags["allow"], Question(flags["scope"], flags["margin"]))
    if not flags["as_json"]:
        print_comparison(output(), found)
    end(Outcome(found, warnings=warnings_of(found)))


def log_looks(sides: Iterable[Side], flags: Mapping[str, Any], command: str = "compare") -> None:
    """Held-out tasks are looked at."""
    for run in {side.run.folder: side.run for side in sides}.values():
        if run.manifest["split"] == "held_out":
            log_look(project_dir(run, flags), command, run.run_id)


def warnings_of(found: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for each in found["comparisons"] for text in each["warnings"]))
