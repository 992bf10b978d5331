"""`mcptrials demo`: the first run, on any machine."""

import os
from pathlib import Path
from typing import Any

import click

from mcptrials.cli.run import run_and_report
from mcptrials.cli.screen import common_options
from mcptrials.demo import SCRIPTED_MODEL, demo_project, example_dir
from mcptrials.errors import UsageError
from mcptrials.runner import RunOptions


@click.command()
@click.option("--trials", type=click.IntRange(min=1), default=2, metavar="N", help="Trials per task (default 2).")
@click.option("--only", metavar="EXPR", help="Tasks by id, glob or field, as in `run`.")
@click.option("--model", "models", multiple=True, metavar="M", help="Use this model instead of the local one.")
@common_options
def demo(**flags: Any) -> None:
    """Evaluate the example issue tracker with a local language model: no key, no account.

    The weights (1.1 GB) are fetched on first use and kept.
    """
    project = demo_project(Path.cwd() / "runs", flags["settings"])
    flags |= {"project_file": os.path.relpath(example_dir() / "mcptrials.yaml"), "yes": False}
    options = RunOptions(only=flags["only"], models=flags["models"], trials=flags["trials"])
    try:
        run_and_report(project, options, flags)
    except UsageError as exc:
        if any(model.partition(":")[0] == "scripted" for model in flags["models"]):
            hint = f"the example's own is: mcptrials demo --model {SCRIPTED_MODEL}"
            raise UsageError(exc.what, where=exc.where, hint=hint) from exc
        if flags["models"]:
            raise
        instead = f"or see the product without a language model: mcptrials demo --model {SCRIPTED_MODEL}"
        hint = f"{exc.hint}; {instead}" if exc.hint else instead
        raise UsageError(exc.what, where=exc.where, hint=hint) from exc
