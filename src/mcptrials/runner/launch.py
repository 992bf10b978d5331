"""What a package runner (npx, uvx) would start, found out once: trials need not pay for the runner each time."""

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcptrials import excerpt
from mcptrials.environment.command import run_command
from mcptrials.environment.reader import ReadError
from mcptrials.protocols import Place

_SHOWN = 300
TIMEOUT_S = 300.0
"""A first start downloads the package."""
_EXACT_NPM = re.compile(r"(?P<name>(?:@[^/@]+/)?[^/@]+)(?:@(?P<version>.+))?")
_EXACT_PYTHON = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*(?:(?:==|@)\s*(?P<version>\d[^,;*\s]*))?"
)
_SETTINGS = ("npm_config_", "uv_", "cwd")
"""What changes what a package runner installs."""


class LaunchError(Exception):
    """Why it cannot be found out; the command is used as it is."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The command behind a package runner, and the package it comes from."""

    command: str
    args: tuple[str, ...]
    package: str
    version: str | None
    pinned: bool
    """Whether the project names the exact version."""

    def facts(self) -> dict[str, Any]:
        """For the manifest; the arguments stand there already, and may be secrets."""
        return {"command": self.command, "package": self.package, "version": self.version, "pinned": self.pinned}


def is_package_runner(command: str, args: Sequence[str]) -> bool:
    name = Path(command).name
    return name in ("npx", "uvx") or (name == "uv" and tuple(args[:2]) == ("tool", "run"))


async def find_launch(command: str, args: Sequence[str], settings: Iterable[str], place: Place) -> Launch:
    """Installs the package as its runner does, and looks where it is.

    Args:
        settings: names of what the project sets besides, where some would change what is installed.

    Raises:
        LaunchError: it cannot be found out.
    """
    for name in settings:
        if name.lower().startswith(_SETTINGS):
            raise LaunchError(f"{name!r} is set, which may change what it finds")
    if Path(command).name == "npx":
        return await _find_npm(command, args, place)
    runner = [command] if Path(command).name == "uvx" else [command, "tool", "run"]
    return await _find_python(runner, args[len(runner) - 1 :], place)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A package runner's command line, taken apart."""

    flags: tuple[str, ...]
    package: str | None
    """Named by an option of its own."""
    program: str
    args: tuple[str, ...]


def _parse(args: Sequence[str], switches: Iterable[str], package_options: Iterable[str]) -> _Asked:
    flags: list[str] = []
    package: str | None = None
    rest = list(args)
    while rest and rest[0].startswith("-"):
        option, _, value = rest.pop(0).partition("=")
        if option == "--":
            break
        if option in switches:
            flags.append(option)
        elif option in package_options and package is None and (value or rest):
            package = value or rest.pop(0)
        else:
            raise LaunchError(f"the option {option!r} is not known here")
    if not rest:
        raise LaunchError("it names no package")
    return _Asked(tuple(flags), package, rest[0], tuple(rest[1:]))


async def _run(argv: Sequence[str], place: Place) -> str:
    try:
        code, output, errors = await run_command(argv, place, TIMEOUT_S)
    except ReadError as exc:
        raise LaunchError(str(exc)) from exc
    if code:
        raise LaunchError(f"it exited with code {code}: {excerpt.telling(errors, _SHOWN) or 'its stderr is empty'}")
    return output.strip()


# --- npx -----------------------------------------------------------------------------------------------------------


async def _find_npm(npx: str, args: Sequence[str], place: Place) -> Launch:
    asked = _parse(args, ("-y", "--yes", "-q", "--quiet"), ("-p", "--package"))
    spec = asked.package or asked.program
    match = _EXACT_NPM.fullmatch(spec)
    if match is None:
        raise LaunchError(f"{spec!r} is no package of the registry")
    name, version = match.group("name"), match.group("version")
    path = await _run([npx, "--yes", "--package", spec, "-c", 'printf %s "$PATH"'], place)
    folder = _package_folder(path, name)
    about = json.loads((folder / "package.json").read_text("utf-8"))
    program = (folder / _npm_program(about, asked.program if asked.package else None)).resolve()
    node = shutil.which("node")
    with program.open("rb") as file:
        script = node is not None and b"node" in file.readline(200)
    command = [str(node), str(program)] if script else [str(program)]
    found = about.get("version")
    pinned = version is not None and version == found
    return Launch(command[0], (*command[1:], *asked.args), name, found, pinned)


def _package_folder(path: str, name: str) -> Path:
    for entry in path.split(":"):
        folder = Path(entry).parent / name
        if Path(entry).name == ".bin" and (folder / "package.json").is_file():
            return folder
    raise LaunchError(f"its package {name!r} is not where npm keeps packages")


def _npm_program(about: Mapping[str, Any], wanted: str | None) -> str:
    """Which file runs: the named one, the only one, or the one by the package's own name (npm exec)."""
    programs, own = about.get("bin"), str(about.get("name", "")).rpartition("/")[2]
    if isinstance(programs, str):
        programs = {own: programs}
    if not isinstance(programs, dict):
        raise LaunchError("its package has no program")
    only = next(iter(programs.values())) if len(programs) == 1 else None
    found = programs.get(wanted) if wanted else only or programs.get(own)
    if not isinstance(found, str):
        raise LaunchError(f"its package has no program {wanted or own!r}")
    return found


# --- uvx -----------------------------------------------------------------------------------------------------------


async def _find_python(runner: Sequence[str], args: Sequence[str], place: Place) -> Launch:
    asked = _parse(args, ("-q", "--quiet"), ("--from",))
    match = _EXACT_PYTHON.fullmatch(asked.package or asked.program)
    if match is None:
        raise LaunchError(f"{asked.package or asked.program!r} names no package and version")
    name, version = match.group("name"), match.group("version")
    spec = asked.package or (f"{name}=={version}" if version else name)
    program = asked.program if asked.package else name
    shell = ("sh", "-c", 'command -v -- "$1"', "sh", program)
    found = Path((await _run([*runner, "--from", spec, *shell], place)).splitlines()[-1])
    prefix = found.parent.parent
    if not (prefix / "pyvenv.cfg").is_file():
        raise LaunchError(f"its package has no program {program!r}")
    return Launch(str(found), asked.args, name, _installed(prefix, name), version is not None)


def _installed(prefix: Path, name: str) -> str | None:
    wanted = re.sub(r"[-_.]+", "_", name).lower()
    for folder in prefix.glob("lib/python*/site-packages/*.dist-info"):
        found, _, version = folder.name.removesuffix(".dist-info").partition("-")
        if re.sub(r"[-_.]+", "_", found).lower() == wanted:
            return version
    return None
