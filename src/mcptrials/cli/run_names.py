"""Runs as the command line names them, and where their project is."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcptrials.errors import UsageError
from mcptrials.project import DEFAULT_FILE, project_file
from mcptrials.source import load_sources
from mcptrials.store import Run, find_run


def run_by_name(run_name: str | None, flags: Mapping[str, Any]) -> Run:
    """A run by its id, a beginning of it, or its folder, else the newest; one given by its folder needs no project.

    Raises:
        UsageError: there is none, or several.
    """
    if run_name is not None and "/" in run_name:
        return find_run(_RUNS, run_name)
    if run_name is not None:
        with suppress(UsageError):
            return Run.load(run_name)
    return find_run(_runs_dir(flags), run_name)


_RUNS = Path("runs")
"""Where runs are by default, also where there is no project file: copied from elsewhere, or kept without it."""


def _runs_dir(flags: Mapping[str, Any]) -> Path:
    """Only one key of the project file is read: a run can be shown without keys, and while tasks are being edited."""
    try:
        path = project_file(Path(flags["project_file"]))
    except UsageError as exc:
        if flags["project_file"] != DEFAULT_FILE:
            raise
        if _RUNS.is_dir():
            return _RUNS
        what = "there is no project file, and no folder of runs"
        raise UsageError(what, where=exc.where, hint=f"{exc.hint}, or give a run's folder") from exc
    project = load_sources(path)[0].value
    replaced = dict(setting.partition("=")[::2] for setting in flags["settings"])
    runs = replaced.get("runs") or (project.get("runs") if isinstance(project, dict) else None) or _RUNS
    return path.resolve().parent / os.path.expandvars(str(runs))


def project_dir(run: Run, flags: Mapping[str, Any]) -> Path:
    """Where the run's project keeps its ledger: by the project file, if the run is one of its runs."""
    runs_dir = run.folder.resolve().parent
    try:
        file = project_file(Path(flags["project_file"]))
    except UsageError:  # a run given by its folder needs no project
        return runs_dir.parent
    if file.exists() and _runs_dir(flags).resolve() == runs_dir:
        return file.parent
    return runs_dir.parent
