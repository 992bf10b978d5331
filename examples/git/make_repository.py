"""Makes the repository that a trial starts from: the same commits, with the same hashes, every time."""

import os
import subprocess
import sys
from pathlib import Path

COMMITS = (
    # (day, author, subject, {file: content})
    (1, "Ada Brandt", "Start the forecast command", {"forecast.py": "UNIT = 'celsius'\nDAYS = 3\n"}),
    (2, "Jin Park", "Add the settings", {"settings.py": "TIMEOUT_S = 10\nRETRIES = 2\nCITY = 'Oslo'\n"}),
    (3, "Ada Brandt", "Show five days", {"forecast.py": "UNIT = 'celsius'\nDAYS = 5\n"}),
    (4, "Noor Haddad", "Tidy up the settings", {"settings.py": "TIMEOUT_S = 10\nRETRIES = 1\nCITY = 'Oslo'\n"}),
    (5, "Jin Park", "Speak of the weather in the notes", {"NOTES.md": "# Notes\n\nIt rains.\n"}),
    (6, "Noor Haddad", "Tidy up the forecast", {"forecast.py": "UNIT = 'fahrenheit'\nDAYS = 5\n"}),
)
RELEASED = 3
"""How many commits the branch `release-1.0` has."""
UNCOMMITTED = {
    "settings.py": "TIMEOUT_S = 30\nRETRIES = 1\nCITY = 'Oslo'\n",
    "NOTES.md": "# Notes\n\nIt rains. Ask Jin about a raise.\n",
}


def git(repository: Path, *arguments: str, **identity: str) -> None:
    """Runs git without the settings of whoever runs this."""
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", str(repository), *arguments], env={**os.environ, **nothing, **identity}, check=True)  # noqa: S607


def commit(repository: Path, day: int, author: str, subject: str) -> None:
    date = f"2026-03-{day:02}T12:00:00+00:00"
    email = f"{author.partition(' ')[0].lower()}@example.com"
    by = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in
          (("NAME", author), ("EMAIL", email), ("DATE", date))}  # fmt: skip
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", subject, **by)


def make_repository(repository: Path) -> None:
    repository.mkdir(parents=True)
    git(repository, "init", "--quiet", "--initial-branch", "main")
    for key, value in (("user.name", "Trial"), ("user.email", "trial@example.com")):
        git(repository, "config", key, value)
    for number, (day, author, subject, files) in enumerate(COMMITS, start=1):
        write(repository, files)
        commit(repository, day, author, subject)
        if number == RELEASED:
            git(repository, "branch", "release-1.0")
    write(repository, UNCOMMITTED)


def write(repository: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (repository / name).write_text(content, "utf-8")


if __name__ == "__main__":
    make_repository(Path(sys.argv[1]))
