"""The group of commands: names and one-line helps as a table, so that `--help` imports no command."""

import importlib
from typing import Any

import click

from mcptrials import __version__

TABLE = {
    "demo": ("mcptrials.cli.demo:demo", "Evaluate the example server with a local model: no key, no account."),
    "init": ("mcptrials.cli.init:init", "Write a first project for a server: mcptrials.yaml and drafts of tasks."),
    "check": ("mcptrials.cli.check:check", "Check files, servers, tools by provider and models, before a run."),
    "run": ("mcptrials.cli.run:run", "Run the suite: every task, every arm, every trial; --resume goes on."),
    "try": ("mcptrials.cli.trying:try_", "Try a change: overrides.yaml or another server, against what is there."),
    "compare": ("mcptrials.cli.compare:compare", "Compare runs or arms, task by task: better, worse, or inconclusive."),
    "power": ("mcptrials.cli.power:power", "Say what tasks and trials can find, and what more would take."),
    "report": ("mcptrials.cli.report:report", "Write a run, or two compared, as one page to send."),
    "show": ("mcptrials.cli.show:show", "Show a run's tables, or one trial's transcript."),
    "grade": ("mcptrials.cli.grade:grade", "Grade a run's trials again by the project's present graders."),
}
"""Everyday commands first."""


class LazyGroup(click.Group):
    """Imports a command when it is invoked."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TABLE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in TABLE:
            return None
        module, _, attribute = TABLE[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in TABLE.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            raise click.UsageError(f"{exc.message.rstrip('.')}; commands: {', '.join(TABLE)}", ctx) from exc


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a check said no, 2 usage, 3 incomplete, 70 a bug.",
)
@click.version_option(__version__, prog_name="mcptrials")
def commands() -> None:
    """Evaluate MCP servers through language models."""
