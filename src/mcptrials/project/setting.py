"""One `a.b=value` of the command line, put into a project file as if the file said so."""

from pathlib import Path
from typing import Any

from mcptrials.errors import UsageError
from mcptrials.jsonpath import parse_path
from mcptrials.project.secrets import suspect
from mcptrials.source import Key, Source, yaml_source


def override(source: Source, setting: str) -> None:
    """Sets a key of `source`.

    Raises:
        UsageError: no `=`, no such place, or a value that is not YAML.
    """
    name, equals, text = setting.partition("=")
    if not equals or not name:
        shown = "with a value that is not shown" if suspect("", setting) else repr(setting)
        raise UsageError(f"--set {shown} has no '='", hint="write --set trials=3 or --set limits.turns=8")
    try:
        *parents, last = parse_path(name)
    except ValueError as exc:
        raise UsageError(str(exc), where=f"--set {name}") from exc
    value, target = _value(name, text), source.value
    key: tuple[Key, ...] = ()
    for part in parents:
        place = _place(name, target, part)
        if isinstance(target, dict) and target.get(place) is None:
            target[place] = {}
        target, key = target[place], (*key, place)
    place = _place(name, target, last)
    target[place] = value
    source.overridden[(*key, place)] = f"--set {name}"


def _place(name: str, target: Any, part: Key) -> Key:
    """`part` as it is used in `target`: a key of a mapping, or a number of an item that a list has."""
    if isinstance(target, dict):
        return str(part)
    if not isinstance(target, list):
        raise UsageError(f"there is no mapping to set {part!r} in", where=f"--set {name}", hint="check the path")
    if str(part).isascii() and str(part).isdigit() and int(part) < len(target):
        return int(part)
    what = f"the list has {len(target)} items and none is {part!r}"
    raise UsageError(what, where=f"--set {name}", hint="count from 0")


def _value(name: str, text: str) -> Any:
    try:
        return yaml_source(Path(f"--set {name}"), text).value
    except UsageError as exc:
        raise UsageError(exc.what, where=f"--set {name}", hint="quote the value") from exc
