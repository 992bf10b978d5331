"""The terminal: what is printed where, and how untrusted text is made harmless."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click
from rich.console import Console
from rich.text import Text

from mcptrials.visible import one_line, plain

__all__ = [
    "SCRIPTED_LABEL",
    "Screen",
    "common_options",
    "from_here",
    "messages",
    "one_line",
    "output",
    "plain",
    "program",
    "safe",
]

SCRIPTED_LABEL = "scripted, not a language model"


def safe(text: object, style: str = "") -> Text:
    """The same as a rich text without markup, on the one line that it is given."""
    return Text(plain(text).replace("\n", r"\n"), style=style)


class Screen(Console):
    """Colour and live displays on terminals only; wide enough for tables elsewhere."""

    def __init__(self, file: TextIO) -> None:
        on_terminal = file.isatty()
        super().__init__(file=file, force_terminal=on_terminal, width=None if on_terminal else 120, highlight=False)


def output() -> Screen:
    """Standard output."""
    return Screen(sys.stdout)


def messages() -> Screen:
    """Standard error, for progress and notices."""
    return Screen(sys.stderr)


def from_here(path: str) -> str:
    """A path as one would type it in the current directory."""
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def program() -> str:
    """This program as one would type it: its path where the shell would not find it by name."""
    started = Path(sys.argv[0])
    if shutil.which("mcptrials") or started.name != "mcptrials":
        return "mcptrials"
    return from_here(str(started.absolute()))


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every command takes."""
    for option in (
        click.option("--quiet", "-q", is_flag=True, help="No progress and no notices."),
        click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output, nothing else."),
        click.option("--set", "settings", multiple=True, metavar="A.B=C", help="Replace a key of the project file."),
        click.option("--project", "project_file", default="mcptrials.yaml", metavar="FILE", help="The project file."),
    ):
        command = option(command)
    return command
