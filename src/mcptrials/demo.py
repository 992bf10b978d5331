"""The demonstration: the example server, its tasks, and the model that needs no key."""

import json
from collections.abc import Sequence
from pathlib import Path

from mcptrials.errors import UsageError
from mcptrials.project import Project


def example_dir() -> Path:
    """Where the example lies: beside this module in an installed package, at the root of a checkout.

    Raises:
        UsageError: it is in neither place.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "examples" / "tracker", here.parents[1] / "examples" / "tracker"):
        if (folder / "mcptrials.yaml").exists():
            return folder
    raise UsageError("the example server is not installed", where=str(here), hint="install mcptrials again")


def demo_project(runs_dir: Path, settings: Sequence[str] = ()) -> Project:
    """The example's project, with its runs where the user is."""
    return Project.load(example_dir() / "mcptrials.yaml", [*settings, f"runs={json.dumps(str(runs_dir))}"])


SCRIPTED_MODEL = "scripted:script.yaml"
"""The stand-in for machines that cannot have the local model; its file lies in the example."""
