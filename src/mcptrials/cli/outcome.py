"""How a command ends: its exit code, its one JSON document, its one line of error."""

import json
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import click

from mcptrials.cli.screen import one_line, plain
from mcptrials.cli.streams import open_streams
from mcptrials.errors import IncompleteError, McptrialsError, UsageError, describe
from mcptrials.redaction import Redactor
from mcptrials.signals import ending_signals

DONE, SAID_NO, USAGE, INCOMPLETE, BUG = 0, 1, 2, 3, 70
SCHEMA_VERSION = 1
_STILL_THERE = "what was recorded is kept; send the output elsewhere"


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


def keep_secret(secrets: dict[str, str]) -> None:
    """From now on the command's way of ending shows none of these values."""
    click.get_current_context().obj.update(secrets)


def settle(group: click.Group, argv: Sequence[str]) -> int:
    """Runs a command; every way of ending becomes an exit code and, with --json, one document on stdout."""
    output, errors = open_streams()
    _prepare_process()
    own = list(argv[: argv.index("--")] if "--" in argv else argv)  # behind it stand words of another command
    as_json = "--json" in own and not {"-h", "--help", "--version"} & set(own)
    outcome = _invoke(group, argv)
    if as_json:
        command = next((word for word in argv if word in group.list_commands(click.Context(group))), None)
        _print_document(command, outcome)
    elif outcome.error:
        _print_error(outcome.error)
    sys.stdout.flush()
    if outcome.error and (errors.lost if not as_json else output.lost):
        _print_error(outcome.error, err=as_json)
    if output.lost is None:
        return outcome.exit_code
    _print_error({"what": f"cannot be written: {output.lost}", "where": "standard output", "hint": _STILL_THERE})
    return INCOMPLETE if outcome.exit_code in (DONE, SAID_NO) else outcome.exit_code


def _prepare_process() -> None:
    """A request to terminate is a Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
            signal.signal(number, _stop)


def _stop(*_: object) -> None:
    """In the background of a script Ctrl-C is ignored, and so would be what is sent on to its handler."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _invoke(group: click.Group, argv: Sequence[str]) -> Outcome:
    secrets: dict[str, str] = {}
    try:
        code = group.main(list(argv), prog_name="mcptrials", standalone_mode=False, obj=secrets)
    except Ended as ended:
        return _without(secrets, ended.outcome)
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.ctx.get_help() if exc.ctx else "")
        return Outcome(exit_code=USAGE)
    except (click.ClickException, click.Abort, KeyboardInterrupt, McptrialsError) as exc:
        secrets |= _misplaced(argv)
        return _failed(*_understood(exc), secrets)
    except Exception as exc:  # noqa: BLE001 - the outermost boundary: a bug must end in exit code 70
        click.echo(plain(Redactor(secrets).text("".join(traceback.format_exception(exc)))), err=True)
        bug = UsageError(f"a bug in mcptrials: {describe(exc)}", hint="please report it with the lines above")
        return _failed(BUG, bug, secrets)
    return Outcome(exit_code=code if isinstance(code, int) else DONE)


def _understood(exc: BaseException) -> tuple[int, McptrialsError]:
    """The exit code and the one line of an ending that is no bug."""
    if isinstance(exc, click.ClickException):
        return USAGE, UsageError(exc.format_message().rstrip("."), hint="see --help")
    if isinstance(exc, McptrialsError):
        return INCOMPLETE if isinstance(exc, IncompleteError) else USAGE, exc
    return INCOMPLETE, IncompleteError("stopped", hint="what was recorded is kept")


def _misplaced(argv: Sequence[str]) -> dict[str, str]:
    """What stands after `--set NAME` instead of after its `=`, which may be a secret."""
    pairs = zip(argv, argv[1:], argv[2:], strict=False)
    return {f"--set {name}": value for option, name, value in pairs if option == "--set" and "=" not in name}


def _failed(code: int, failure: McptrialsError, secrets: dict[str, str]) -> Outcome:
    error = {"what": failure.what, "where": failure.where, "hint": failure.hint}
    return _without(secrets, Outcome(exit_code=code, error=error))


def _without(secrets: Mapping[str, str], outcome: Outcome) -> Outcome:
    """The data come from a run's files, which hold no secret; what is said beside them may."""
    redactor = Redactor(secrets)
    error = outcome.error and {key: text and redactor.text(text) for key, text in outcome.error.items()}
    return replace(outcome, warnings=tuple(map(redactor.text, outcome.warnings)), error=error)


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


def _print_error(error: dict[str, str | None], *, err: bool = True) -> None:
    line = str(McptrialsError(error["what"] or "", where=error["where"], hint=error["hint"]))
    click.echo(f"error: {one_line(line)}", err=err)
