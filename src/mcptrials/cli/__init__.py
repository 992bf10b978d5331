"""The command line: one module per command, imported when it is used."""

import gc
import sys
from collections.abc import Sequence

from mcptrials.cli.group import commands
from mcptrials.cli.outcome import settle


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code."""
    code = settle(commands, list(sys.argv[1:] if argv is None else argv))
    gc.freeze()  # an exit that searches every module for cycles takes a fifth of the time that it took to import them
    sys.exit(code)
