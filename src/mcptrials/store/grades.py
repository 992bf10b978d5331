"""Grades: the files of verdicts that were given to a run's trials later; the newest counts, and each is kept."""

from collections.abc import Iterable
from pathlib import Path

from mcptrials.encoding import parse_json
from mcptrials.errors import UsageError
from mcptrials.record import Verdicts
from mcptrials.store.disk import read_regular, write_new, writing

FOLDER = "grades"
Key = tuple[str, str, int, int]


def numbers(folder: Path) -> list[int]:
    """Of the files that are there, oldest first."""
    return sorted(int(path.stem) for path in (folder / FOLDER).glob("*.jsonl") if path.stem.isdecimal())


def chosen_grades(folder: Path, wanted: int | None) -> int:
    """The number of the grades to read: the newest, unless others are wanted.

    Raises:
        UsageError: there are none of that number.
    """
    there = [0, *numbers(folder)]
    if wanted is None:
        return there[-1]
    if wanted not in there:
        hint = f"there are {', '.join(map(str, there))}; 0 are those of the run itself"
        raise UsageError(f"the run has no grades {wanted}", where=str(folder / FOLDER), hint=hint)
    return wanted


def read_grades(folder: Path, number: int) -> dict[Key, Verdicts]:
    """By attempt; nothing for the run's own grades.

    Raises:
        UsageError: the file is gone or damaged.
    """
    if number == 0:
        return {}
    path = folder / FOLDER / f"{number}.jsonl"
    try:
        lines = [Verdicts.model_validate(parse_json(line)) for line in read_regular(path).splitlines()]
    except (OSError, ValueError) as exc:
        hint = "restore the file, or remove it: then the grades before it count"
        raise UsageError("these grades cannot be read", where=str(path), hint=hint) from exc
    return {said.key: said for said in lines}


def refuse_grading(folder: Path) -> None:
    """Finds out, before anything is graded, that no grades could be added to a run.

    Raises:
        UsageError: their folder is none.
    """
    place = folder / FOLDER
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise UsageError("grades of a run stand in a folder, and this is none", where=str(place), hint="move it away")


def write_grades(folder: Path, lines: Iterable[bytes]) -> int:
    """Adds a file after the newest, which nobody sees before it is whole; gives its number.

    Raises:
        IncompleteError: the disk is full or gone.
    """
    content = b"".join(lines)
    with writing(folder):
        (folder / FOLDER).mkdir(exist_ok=True)
        while True:
            number = max(numbers(folder), default=0) + 1
            try:
                write_new(folder / FOLDER / f"{number}.jsonl", content)
            except FileExistsError:  # somebody else grades the run too
                continue
            return number
