"""The parts of docs/quickstart.md, as the files that a reader would save."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "quickstart.md"
BLOCK = re.compile(r"```(?:python|yaml|javascript)\n(?:#|//) (\S+)\n(.*?)```", re.DOTALL)


def write_files(heading: str, folder: Path) -> None:
    """Saves what stands under a heading."""
    part = PAGE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    for name, content in BLOCK.findall(part):
        (folder / name).write_text(content, "utf-8")
    for content in re.findall(r"```json\n(.*?)```", part, flags=re.DOTALL):
        (folder / "notes.json").write_text(content, "utf-8")
