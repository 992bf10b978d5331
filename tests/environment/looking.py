"""One look of a reader at a trial's place, as graders and projects ask for it."""

from functools import partial
from pathlib import Path
from typing import Any

from mcptrials import plugins
from mcptrials.environment import Environment, EnvironmentSpec
from mcptrials.protocols import Place, StateQuery
from mcptrials.trial import StateValue


def no_wire(server: str) -> Any:
    raise AssertionError(server)


def make_place(folder: Path) -> Place:
    (folder / "trial").mkdir(exist_ok=True)
    return Place(folder / "trial", folder, no_wire)


def environment(folder: Path, **spec: Any) -> Environment:
    load = partial(plugins.load, "readers", project_dir=folder)
    return Environment(EnvironmentSpec.model_validate(spec), folder, load)


async def found(folder: Path, reader: dict[str, Any]) -> StateValue:
    """What a reader in place of a query finds."""
    return await environment(folder).read(StateQuery(text="q", read=reader), make_place(folder))


async def asked(folder: Path, pattern: str, reader: dict[str, Any], query: str) -> StateValue:
    """What a query finds through the one reader of a project."""
    return await environment(folder, readers={pattern: reader}).read(StateQuery(text=query), make_place(folder))
