"""Prints the files of a folder as JSON: path -> text. Links and what is no text are named, not read."""

import json
import sys
from pathlib import Path


def read(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return f"[no regular file: {'a link' if path.is_symlink() else 'something else'}]"
    return path.read_text("utf-8", errors="replace")


def read_files(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix(): read(path) for path in paths}


if __name__ == "__main__":
    print(json.dumps(read_files(Path(sys.argv[1]))))
