"""A project file's settings, checked against each other and against the plugs that are there."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from mcptrials import plugins
from mcptrials.environment import parse_reader
from mcptrials.environment.spec import pattern_names
from mcptrials.errors import UsageError
from mcptrials.overrides import NOTHING, Naming, Overrides
from mcptrials.project.config import HostConfig, ProjectConfig
from mcptrials.project.readers import check_reader
from mcptrials.source import Key, Keys, Source, below, explain, load_source, nearest


def make_config(source: Source, value: Any) -> ProjectConfig:
    """The settings, from the file's expanded value.

    Raises:
        UsageError: with file, line, key and the nearest valid name.
    """
    try:
        config = ProjectConfig.model_validate(value)
    except ValidationError as exc:
        raise explain(source, exc) from exc
    for name, variant in config.variants.items():
        for server, patch in variant.items() if isinstance(variant, dict) else ():
            if isinstance(patch, str):
                _check_told(source, config, ("variants", name, server), patch)
            else:
                _check_patch(source, config, ("variants", name, server), patch)
    _check_twins(source, "models", [(each.model, each.base_url, each.schema_, each.settings) for each in config.models])
    _check_twins(source, "hosts", list(config.hosts))
    for index, model in enumerate(config.models):
        with _placed(source, "models", index):
            plugins.find("models", model.adapter)
    for index, host in enumerate(config.hosts):
        with _placed(source, "hosts", index):
            plugins.find("hosts", host.host)
            _check_host_settings(source, index, host)
    for name, reader in config.environment.readers.items() if config.environment else ():
        with _placed(source, "environment", "readers", name):
            check_reader(parse_reader(reader), config, source.path.parent, pattern_names(name))
    return _by_naming(config) if config.naming else config


def _check_patch(source: Source, config: ProjectConfig, key: Keys, patch: dict[str, Any]) -> None:
    """A variant's patch of one server."""
    server = str(key[-1])
    if server not in config.servers:
        hint = nearest(server, config.servers)
        raise UsageError(f"there is no server {server!r} to patch", where=source.where(key), hint=hint)
    try:
        config.patched(server, patch)
    except ValidationError as exc:
        raise explain(source, exc, below(*key)) from exc


def _check_told(source: Source, config: ProjectConfig, key: Keys, said: str) -> None:
    """A key of a variant that is no patch of a server."""
    where = source.where(key)
    if key[-1] == "naming":
        if said not in get_args(Naming):
            raise UsageError(f"there is no naming {said!r}", where=where, hint=nearest(said, get_args(Naming)))
        if config.naming:
            raise UsageError("the project's 'naming' names the tools of every variant", where=where, hint="remove one")
    elif key[-1] != "overrides":
        hint = nearest(str(key[-1]), [*config.servers, "overrides", "naming"])
        what = f"{key[-1]!r} is neither 'overrides' nor 'naming', so it should be a mapping: the patch of a server"
        raise UsageError(what, where=where, hint=hint)


def _by_naming(config: ProjectConfig) -> ProjectConfig:
    """Every variant once by each way to name tools."""
    variants = {
        f"{name}-{naming}": {**variant, "naming": naming}
        for name, variant in config.variants.items()
        if isinstance(variant, dict)
        for naming in dict.fromkeys(config.naming)
    }
    others = {name: variant for name, variant in config.variants.items() if not isinstance(variant, dict)}
    return config.model_copy(update={"variants": variants | others})


def load_overrides(config: ProjectConfig, variant: str, folder: Path, where: str) -> Overrides:
    """What a variant tells models instead of what the servers say.

    Raises:
        UsageError: with file, line, key and the nearest valid name.
    """
    file, naming = config.told_by(variant, "overrides"), config.told_by(variant, "naming")
    told = NOTHING
    if file is not None:
        source = load_source(_overrides_file(folder, file, where))
        try:
            told = Overrides.model_validate({} if source.value is None else source.value)
        except ValidationError as exc:
            raise explain(source, exc) from exc
    if naming and told.naming:
        what = f"both the variant and {file} say how tools are named"
        raise UsageError(what, where=where, hint="remove one 'naming'")
    return told.model_copy(update={"naming": naming}) if naming else told


def _overrides_file(folder: Path, file: str, where: str) -> Path:
    if not file or "\0" in file:
        raise UsageError("this is no path of a file", where=where, hint="write overrides: overrides.yaml")
    return folder / file


def _check_twins(source: Source, kind: str, plugs: list[Any]) -> None:
    """Equal models or hosts would be one arm, and the trials of one of them missing."""
    for index, plug in enumerate(plugs):
        if (first := plugs.index(plug)) < index:
            what = f"the same as {kind}[{first}]: their results could not be told apart"
            raise UsageError(what, where=source.where((kind, index)), hint="remove one")


@contextmanager
def _placed(source: Source, *key: Key) -> Iterator[None]:
    """Adds the place to an error that has none."""
    try:
        yield
    except UsageError as exc:
        raise UsageError(exc.what, where=exc.where or source.where(key), hint=exc.hint) from exc


def _check_host_settings(source: Source, index: int, host: HostConfig) -> None:
    if not host.settings:
        return
    plug = plugins.load("hosts", host.host, source.path.parent)
    known = inspect.signature(plug).parameters
    for name in host.settings.keys() - known.keys():
        where = source.where(("hosts", index, name))
        raise UsageError(f"unknown key {name!r}", where=where, hint=nearest(name, ["host", *known]))
    if isinstance(plug, type) and issubclass(plug, BaseModel):
        try:
            plug.model_validate(host.settings)
        except ValidationError as exc:
            raise explain(source, exc, below("hosts", index)) from exc
