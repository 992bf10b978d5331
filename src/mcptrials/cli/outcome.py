"""How a command ends: its exit code, its one JSON document, its one line of error."""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import click

from mcptrials.errors import IncompleteError, McptrialsError, TrialError, UsageError, describe

DONE, SAID_NO, USAGE, INCOMPLETE, BUG = 0, 1, 2, 3, 70
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Outcome:
    """What a command came to."""

    data: Any = None
    exit_code: int = DONE
    warnings: tuple[str, ...] = ()
    error: dict[str, str | None] | None = None


@dataclass
class Ended(Exception):  # noqa: N818 - it ends a command, well or badly
    """Carries a command's outcome out of click."""

    outcome: Outcome = field(default_factory=Outcome)


def end(outcome: Outcome) -> NoReturn:
    raise Ended(outcome)


def settle(group: click.Group, argv: Sequence[str]) -> int:
    """Runs a command; every way of ending becomes an exit code and, with --json, one document on stdout."""
    as_json = "--json" in argv
    try:
        outcome = _invoke(group, argv)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    if as_json:
        command = next((word for word in argv if word in group.list_commands(click.Context(group))), None)
        _print_document(command, outcome)
    elif outcome.error:
        _print_error(outcome.error)
    return outcome.exit_code


def _invoke(group: click.Group, argv: Sequence[str]) -> Outcome:
    try:
        code = group.main(list(argv), prog_name="mcptrials", standalone_mode=False)
        sys.stdout.flush()
    except Ended as ended:
        sys.stdout.flush()
        return ended.outcome
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.ctx.get_help() if exc.ctx else "")
        return Outcome(exit_code=USAGE)
    except click.ClickException as exc:
        return _failed(USAGE, exc.format_message(), None, "see --help")
    except (KeyboardInterrupt, click.Abort):
        return _failed(INCOMPLETE, "stopped", None, "nothing was run")
    except IncompleteError as exc:
        return _failed(INCOMPLETE, exc.what, exc.where, exc.hint)
    except (UsageError, TrialError) as exc:
        return _failed(USAGE, exc.what, exc.where, exc.hint)
    except BrokenPipeError:
        raise
    except Exception as exc:  # noqa: BLE001 - the outermost boundary: a bug must end in exit code 70
        traceback.print_exc(file=sys.stderr)
        return _failed(BUG, f"a bug in mcptrials: {describe(exc)}", None, "please report it with the lines above")
    return Outcome(exit_code=code if isinstance(code, int) else DONE)


def _failed(code: int, what: str, where: str | None, hint: str | None) -> Outcome:
    return Outcome(exit_code=code, error={"what": what, "where": where, "hint": hint})


def _print_document(command: str | None, outcome: Outcome) -> None:
    document = {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "ok": outcome.exit_code == DONE,
        "exit_code": outcome.exit_code,
        "data": outcome.data,
        "warnings": list(outcome.warnings),
        "error": outcome.error,
    }
    print(json.dumps(document, indent=2, allow_nan=False))  # noqa: T201 - the document is the command's output


def _print_error(error: dict[str, str | None]) -> None:
    line = str(McptrialsError(error["what"] or "", where=error["where"], hint=error["hint"]))
    click.echo(f"error: {' '.join(line.split())}", err=True)
