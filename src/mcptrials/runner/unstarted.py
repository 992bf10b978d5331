"""Unstarted: what to do about a server that does not start, by what its command names that is not there."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from mcptrials.errors import ServerError, TrialError
from mcptrials.project import ServerConfig
from mcptrials.source import Key, alike

_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".jar", ".php", ".pl")
"""An argument that ends so and is no option names a file."""

_SURE = 0.75
"""All scripts end alike."""

Absent = tuple[tuple[Key, ...], str]
"""The key inside of the server's, and what to do."""


def start_hint(exc: TrialError, config: ServerConfig, project_dir: Path) -> Absent:
    """What to do, and at which key of the server."""
    box, said = config.sandbox, exc.message.lower()
    if exc.cause == "auth":
        return (), "check the credential"
    if config.url is not None:
        return ("url",), "check 'url' and that the server runs there"
    if config.python is not None:
        return ("python",), f"call {config.python} by hand"
    if box and box.mode in ("auto", "landlock") and ("denied" in said or "eacces" in said):
        what = "its sandbox may be why: name what it needs besides under 'sandbox: {read: [...], write: [...]}'"
        return ("sandbox",) if config.model_fields_set & {"sandbox"} else (), what
    if not isinstance(exc, ServerError):
        return (), "mend the environment"
    contained = box is not None and box.mode == "container"
    absent = None if contained else next(_absent(config, project_dir), None)
    return absent or ((), "run its command by hand")


def _absent(config: ServerConfig, project_dir: Path) -> Iterator[Absent]:
    """What its command names that is not there."""
    command, folder = str(config.command), project_dir / (config.cwd or "")
    if "{" not in command and not shutil.which(command) and not (folder / command).exists():
        words = command.split()
        if len(words) > 1:
            yield ("command",), f"write 'command: {words[0]}' and 'args: [{', '.join(words[1:])}]'"
        yield ("command",), f"{command!r} is not on the PATH: install it, or write its path"
    for index, arg in enumerate(config.args):
        if arg.endswith(_SCRIPTS) and not arg.startswith("-") and "{" not in arg and not (folder / arg).exists():
            beside = [path.name for path in (folder / arg).parent.glob(f"*{Path(arg).suffix}")]
            meant = alike(Path(arg).name, beside, _SURE)
            yield ("args", index), f"there is no file {arg!r}" + (f"; did you mean {meant!r}?" if meant else "")
