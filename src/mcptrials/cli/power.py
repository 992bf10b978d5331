"""`mcptrials power`: what an experiment can find, before it is paid for."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from mcptrials.cli.outcome import Outcome, end, keep_secret
from mcptrials.cli.power_page import print_power
from mcptrials.cli.run_names import project_dir, run_by_name
from mcptrials.cli.screen import common_options, messages, output, safe
from mcptrials.errors import UsageError
from mcptrials.planning import Ground, Wish, ground_of_project, ground_of_run, reckon
from mcptrials.project import Project
from mcptrials.stats.chance import MOST_TASKS, SIMULATED_RUNS
from mcptrials.store import log_look
from mcptrials.task import MAX_TRIALS


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--tasks", type=click.IntRange(1, MOST_TASKS), metavar="N", help="So many tasks like those at hand.")
@click.option("--trials", type=click.IntRange(1, MAX_TRIALS), metavar="K", help="Trials per task and arm.")
@click.option("--effect", type=float, metavar="POINTS", help="What a true difference of so many points needs.")
@click.option("--power", type=float, default=0.8, metavar="SHARE", help="How often it should be found (default 0.8).")
@click.option("--cost-task", type=float, metavar="X", help="What a new task costs, in any unit.")
@click.option("--cost-trial", type=float, metavar="Y", help="What one trial of one arm costs, in the same unit.")
@common_options
def power(run_name: str | None, **flags: Any) -> None:
    """Say what a comparison of two arms can find, and what it would take to find more.

    Of the project's training tasks with the usual noise, or of an earlier RUN with its own. The test that `compare` and
    `try` decide by is simulated; nothing is run and nothing is spent.
    """
    wish = _wish(flags)
    ground = _ground(run_name, flags)
    if flags["quiet"] or flags["as_json"]:
        found = reckon(ground, wish)
    else:
        with _telling() as tell:
            found = reckon(ground, wish, tell)
    if not flags["as_json"]:
        print_power(output(), found)
    end(Outcome(found, warnings=tuple(found["warnings"])))


def _wish(flags: Mapping[str, Any]) -> Wish:
    """What the options ask for.

    Raises:
        UsageError: a number that cannot be meant.
    """
    effect, share = flags["effect"], flags["power"]
    if effect is not None and not 0 < effect <= 100:  # noqa: PLR2004 - percentage points
        raise UsageError(f"--effect {effect:g} is no difference", hint="give points above 0 and up to 100, as 10")
    if not 0.5 <= share <= 0.99:  # noqa: PLR2004
        raise UsageError(f"--power {share:g} cannot be planned for", hint="give a share from 0.5 to 0.99, as 0.8")
    costs = [flags["cost_task"], flags["cost_trial"]]
    if (costs[0] is None) != (costs[1] is None):
        raise UsageError("--cost-task and --cost-trial go together", hint="give both, in the same unit")
    if costs[0] is not None and not (0 <= costs[0] < _DEAREST and 1 / _DEAREST < costs[1] < _DEAREST):
        hint = "give a finite --cost-task of at least 0 and a --cost-trial above 0"
        raise UsageError(f"costs of {costs[0]:g} a task and {costs[1]:g} a trial make no plan", hint=hint)
    return Wish(flags["tasks"], flags["trials"], None if effect is None else effect / 100, share, *costs)


_DEAREST = 1e12


def _ground(run_name: str | None, flags: Mapping[str, Any]) -> Ground:
    if run_name is not None:
        run = run_by_name(run_name, flags)
        if run.manifest["split"] == "held_out":
            log_look(project_dir(run, flags), "power", run.run_id)
        return ground_of_run(run)
    project = Project.load(flags["project_file"], flags["settings"])
    keep_secret(dict(project.secrets))
    return ground_of_project(project)


@contextmanager
def _telling() -> Iterator[Any]:
    """How far it is, on a terminal; elsewhere one line that it has begun would only be noise."""
    done = 0
    screen = messages()
    if not screen.is_terminal:
        yield lambda: None
        return
    with screen.status(safe("simulating")) as status:

        def tell() -> None:
            nonlocal done
            done += 1
            status.update(safe(f"simulating the test: design {done}, {SIMULATED_RUNS:,} comparisons each"))

        yield tell
