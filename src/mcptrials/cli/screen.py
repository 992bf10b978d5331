"""The terminal: what is printed where, and how untrusted text is made harmless."""

import re
import sys
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.text import Text

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

SCRIPTED_LABEL = "scripted, not a language model"


def plain(text: object) -> str:
    """Text from servers, models and files with control characters shown instead of obeyed."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", str(text))


def safe(text: object, style: str = "") -> Text:
    """The same as a rich text without markup."""
    return Text(plain(text), style=style)


def output() -> Console:
    """Standard output; wide enough for tables when it is no terminal."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 120)


def messages() -> Console:
    """Standard error, for progress and notices."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else 120)


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
