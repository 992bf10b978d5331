"""Finding: a run by its id, the beginning of its id, or its folder."""

import difflib
from pathlib import Path

from mcptrials.errors import UsageError
from mcptrials.store.run import Run

_SHOWN = 5
_START = "start one: mcptrials run"


def find_run(runs_dir: Path, name: str | None) -> Run:
    """A run by path or id, or by a beginning that no other id has; without a name the newest.

    Raises:
        UsageError: there is none, or several; says which there are.
    """
    try:
        return _find_run(runs_dir, name)
    except (OSError, ValueError) as exc:
        what = f"runs cannot be looked for: {getattr(exc, 'strerror', None) or exc}"
        raise UsageError(what, where=str(runs_dir), hint="check the name, and 'runs' in the project file") from exc


def _find_run(runs_dir: Path, name: str | None) -> Run:
    for folder in () if name is None else (Path(name), runs_dir / name):
        if (folder / "manifest.json").exists():
            return Run.load(folder)
    if name is not None and "/" in name:
        if Path(name).is_dir():
            return Run.load(name)  # which says what is missing
        runs_dir, name = Path(name).parent, Path(name).name
    known = _newest_first(runs_dir)
    if not known:
        what = "there is no run yet" if name is None else f"there is no run {name!r}"
        raise UsageError(what, where=str(runs_dir), hint=_START)
    meant = known[:1] if name is None else [each for each in known if name and each.startswith(name)]
    if len(meant) == 1:
        return Run.load(runs_dir / meant[0])
    if meant:
        raise UsageError(
            f"{len(meant)} runs begin with {name!r}", where=str(runs_dir), hint=f"name one: {_some(meant)}"
        )
    raise UsageError(f"there is no run {name!r}", where=str(runs_dir), hint=_hint(str(name), known))


def _newest_first(runs_dir: Path) -> list[str]:
    """By when they began, as their manifests were written."""
    found = [(path.stat().st_mtime_ns, path.parent.name) for path in runs_dir.glob("*/manifest.json")]
    return [name for _, name in sorted(found, reverse=True)]


def _hint(name: str, known: list[str]) -> str:
    there = f"there are, newest first: {_some(known)}"
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}? {there}" if close else there


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
