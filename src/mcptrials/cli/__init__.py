"""The command line: one module per command, imported when it is used."""

import sys
from collections.abc import Sequence

from mcptrials.cli.group import commands
from mcptrials.cli.outcome import settle


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code."""
    sys.exit(settle(commands, list(sys.argv[1:] if argv is None else argv)))
