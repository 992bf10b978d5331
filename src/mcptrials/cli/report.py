"""`mcptrials report`: a run, or two, as one page to send."""

import sys
from pathlib import Path
from typing import Any, Literal, get_args

import click

from mcptrials.cli.compare import log_looks, question_options
from mcptrials.cli.outcome import Outcome, end
from mcptrials.cli.run_names import project_dir, run_by_name
from mcptrials.cli.screen import common_options, messages, safe
from mcptrials.comparison import Question, Side, find_sides
from mcptrials.errors import UsageError
from mcptrials.page import Contents, Shown, contents_of, html_page, markdown_page
from mcptrials.store import Run, log_look
from mcptrials.store.disk import write_whole

Format = Literal["html", "markdown"]
_BY_ENDING: dict[str, Format] = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}
_STANDARD_OUTPUT = "-"


@click.command()
@click.argument("names", metavar="[RUN] [RUN2]", nargs=-1)
@click.option("-o", "--output", "target", metavar="FILE", help="Where to (default report.html or .md; - is stdout).")
@click.option("--to", "form", type=click.Choice(get_args(Format)), help="The format, by default as FILE ends.")
@click.option(
    "--transcripts",
    type=click.Choice(get_args(Shown)),
    default="train",
    help="Whose are on the page: train (default), held_out too, or none.",
)
@question_options
@common_options
def report(names: tuple[str, ...], target: str | None, form: Format | None, **flags: Any) -> None:
    """Write a run as one page to send: numbers, charts and transcripts in one file that needs no network.

    RUN is a run's id, its beginning or its folder, by default the newest; the arms of a single run are compared with
    its first. With RUN2, RUN2 is compared with RUN; each may be RUN:ARM.
    """
    path, form = _target(target, form, as_json=flags["as_json"])
    runs, sides = _meant(names, flags)
    question = Question(flags["scope"], flags["margin"])
    contents = contents_of(runs, sides, flags["allow"], (question, flags["transcripts"]))
    page = html_page(contents) if form == "html" else markdown_page(contents)
    _write(path, page)
    if path and not flags["quiet"] and not flags["as_json"]:
        messages().print(safe(f"{path}: {_size(page)}, {_readable(contents)}"))
    end(Outcome({"file": path and str(path), "format": form, **contents.data}, warnings=_warnings(contents)))


def _target(target: str | None, form: Format | None, *, as_json: bool) -> tuple[Path | None, Format]:
    """The file, or None for standard output, and the format."""
    if target == _STANDARD_OUTPUT:
        if as_json:
            raise UsageError("standard output cannot hold both the page and --json's document", hint="name a file: -o")
        return None, form or "html"
    path = Path(target or ("report.md" if form == "markdown" else "report.html"))
    found = form or _BY_ENDING.get(path.suffix.lower())
    if found is None:
        raise UsageError("its name tells no format", where=str(path), hint="end it in .html or .md, or say --to")
    _check_place(path)
    return path, found


def _check_place(path: Path) -> None:
    """Before anything is read: what stands there is replaced as a whole, which only a file may be."""
    hint = "choose another with -o"
    if not path.parent.is_dir():
        raise UsageError("there is no such folder", where=str(path.parent), hint=hint)
    if path.exists() and not path.is_file():
        raise UsageError("there is something that is no file", where=str(path), hint=hint)


def _meant(names: tuple[str, ...], flags: dict[str, Any]) -> tuple[list[Run], list[Side]]:
    """The runs, and the two sides of a comparison that is asked for. Held-out tasks are looked at."""
    if len(names) > 2:  # noqa: PLR2004 - a baseline and a change
        raise UsageError(f"a page holds one run or two, not {len(names)}", hint="compare more with: mcptrials compare")
    if len(names) < 2:  # noqa: PLR2004
        run = run_by_name(names[0] if names else None, flags)
        if run.manifest["split"] == "held_out":
            log_look(project_dir(run, flags), "report", run.run_id)
        return [run], []
    sides = find_sides(names, lambda name: run_by_name(name, flags))
    log_looks(sides, flags, "report")
    return list({side.run.folder.resolve(): side.run for side in sides}.values()), sides


def _write(path: Path | None, page: str) -> None:
    if path is None:
        sys.stdout.write(page)
        return
    try:
        write_whole(path, page.encode())
    except OSError as exc:
        path.with_name(f"{path.name}.tmp").unlink(missing_ok=True)
        what = f"the page cannot be written: {exc.strerror or exc}"
        raise UsageError(what, where=str(path), hint="choose another place with -o") from exc


def _size(page: str) -> str:
    return f"{len(page.encode()) / 1e6:.1f} MB"


def _readable(contents: Contents) -> str:
    return f"{len(contents.reading.told)} of {len(contents.data['trials'])} transcripts to read"


def _warnings(contents: Contents) -> tuple[str, ...]:
    found = [text for summary in contents.data["summaries"] for text in summary["warnings"]]
    return tuple(dict.fromkeys([*contents.data["headline"]["limits"], *contents.data["not_compared"], *found]))
