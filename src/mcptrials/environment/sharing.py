"""State outside the trial's directory, which trials side by side would share: what an environment declares of it."""

from collections.abc import Iterator
from pathlib import PurePath

from mcptrials.environment.reader import Reader, parse_reader
from mcptrials.environment.readers.command import CommandReader
from mcptrials.environment.readers.file import FileReader
from mcptrials.environment.readers.sql import SqlReader
from mcptrials.environment.remains import SQLITE
from mcptrials.environment.spec import EnvironmentSpec

_OWN = "{trial_dir}"


def shared_state(spec: EnvironmentSpec) -> list[str]:
    """What is declared to be state and lies outside the trial's directory, in one line each.

    A file that is only hashed may be there to be equal; one that a reader looks at is what trials change.
    """
    return list(dict.fromkeys(_shared(spec)))


def _shared(spec: EnvironmentSpec) -> Iterator[str]:
    for step in spec.reset:
        yield from _of_database("a reset step", parse_reader(step))
    for part in spec.state_hash:
        yield from _of_database("state_hash", parse_reader(part))
    for name, value in spec.readers.items():
        reader = parse_reader(value)
        yield from _of_database(f"reader {name!r}", reader)
        if isinstance(reader, FileReader) and is_outside(reader.file):
            yield f"reader {name!r} reads {reader.file!r}"


def _of_database(who: str, reader: Reader) -> Iterator[str]:
    if not isinstance(reader, SqlReader):
        return
    if reader.url.startswith(SQLITE):
        if is_outside(reader.url.removeprefix(SQLITE)):
            yield f"{who} uses {reader.url!r}"
    elif _OWN not in reader.url:
        yield f"{who} uses a database of kind {reader.url.partition(':')[0]!r}"


def is_outside(path: str) -> bool:
    """Whether a path, of which the rest is relative to the trial's directory, leads out of it."""
    steps = PurePath(path)
    return _OWN not in path and (steps.is_absolute() or path.startswith("{project_dir}") or ".." in steps.parts)


def resets_apart(spec: EnvironmentSpec) -> bool:
    """Whether one trial's reset cannot disturb another's: no step does what has nothing to do with the directory."""
    steps = [parse_reader(step) for step in spec.reset]
    commands = [step.command for step in steps if isinstance(step, CommandReader)]
    return all(any(_OWN in word for word in command) for command in commands)
