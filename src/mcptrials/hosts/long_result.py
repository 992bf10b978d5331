"""A result that is longer than its host takes, as hosts with such a bound show it."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Literal

from mcptrials import excerpt
from mcptrials.presentation import BYTES_PER_TOKEN, Change
from mcptrials.protocols import Place

FOLDER = "tool-results"
_PREVIEW = 2000
"""Bytes that are shown of a result that went to a file."""
_POLICY = "long_result"


def shortened(
    shown: str, max_tokens: int, how: Literal["error", "truncate", "file"], place: Place, call_id: str
) -> tuple[str, tuple[Change, ...]]:
    """What the model reads, and the change if there was one; its rule says how."""
    raw = shown.encode()
    if len(raw) <= max_tokens * BYTES_PER_TOKEN:
        return shown, ()
    tokens = len(raw) // BYTES_PER_TOKEN
    if how == "truncate":
        text = excerpt.beginning_of_bytes(raw, max_tokens * BYTES_PER_TOKEN)
    elif how == "error":
        text = f"Error: the result has about {tokens:,} tokens, more than the {max_tokens:,} that are taken"
    else:
        text = _in_a_file(raw, tokens, place, f"{call_id}.txt")
    return text, (Change(_POLICY, "result", len(raw), len(text.encode()), how),)


def _in_a_file(raw: bytes, tokens: int, place: Place, name: str) -> str:
    beginning = excerpt.beginning_of_bytes(raw, _PREVIEW)
    try:
        with _folder(place) as folder:
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
            with closing(os.fdopen(file, "wb")) as opened:
                opened.write(raw)
    except OSError as exc:
        where = f"could not be saved ({exc.strerror})"
    else:
        where = f"was saved to {place.trial_dir / FOLDER / name}"
    return f"The result has about {tokens:,} tokens and {where}. It begins:\n{beginning}"


@contextmanager
def _folder(place: Place) -> Iterator[int]:
    """Our folder in the trial's directory, where a server may have put links to elsewhere: none is followed.

    Raises:
        OSError: it cannot be made, or is another than it was.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    trial_dir = os.open(place.trial_dir, flags)
    try:
        found = os.fstat(trial_dir)
        if place.inode not in (None, (found.st_dev, found.st_ino)):
            raise NotADirectoryError(0, "the trial's directory is another")
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=trial_dir)
        folder = os.open(FOLDER, flags, dir_fd=trial_dir)
    finally:
        os.close(trial_dir)
    try:
        yield folder
    finally:
        os.close(folder)
