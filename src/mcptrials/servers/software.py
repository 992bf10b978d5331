"""Software: where a server's program stands with all that it is made of, as far as that can be told from outside."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mcptrials.servers.landlock import beneath

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/snap",
    "/nix/store",
    "/gnu/store",
)
_RUNTIME = (
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/run/systemd/resolve",
    "/run/resolvconf",
)
SYSTEM = tuple(map(Path, (*_SYSTEM, *_RUNTIME, "/var/cache/fontconfig")))
DEVICES = tuple(Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom", "tty"))
"""No pseudo-terminals: whoever may open its own may open those in which the user is typing."""
STORES = (".local/bin", ".local/lib", ".local/share/uv", ".npm", ".cache/uv")
"""In a home: programs and packages that the user installed, and what package runners fetched."""
_PREFIX_MARKS = ("pyvenv.cfg", "conda-meta", "lib/node_modules", "lib/python*")
_PACKAGE_MARKS = ("package.json", "pyproject.toml")
_MAX_LINKS = 10


def named_paths(texts: Iterable[str], folder: Path) -> list[Path]:
    """What is there of the paths that texts name: whole, as the value of an option, or in a list as PATH is one."""
    found: dict[Path, None] = {}
    for text in texts:
        for part in filter(None, (text, text.partition("=")[2], *text.split(os.pathsep))):
            with suppress(OSError, ValueError):
                if (path := folder / part).exists():
                    found[Path(os.path.normpath(path))] = None
    return list(found)


def software_of(program: Path, named: Sequence[Path], write: Sequence[Path] = ()) -> list[Path]:
    """Folders and files that a program needs to be readable.

    Args:
        program: the file that is started.
        named: what its command line names, such as a script for an interpreter.
        write: what the program may write: no link and no file there is believed, which may be its own by now.
    """
    names = _names(program, write)
    all_names = (*names, *_names(Path(sys.executable), ()))
    prefixes = list(dict.fromkeys(each for name in all_names for each in _prefixes(name)))
    roots = [root for path in (*names, *named) for root in _package_roots(path)]
    editable = [place for prefix in prefixes if not beneath(prefix / "lib", write) for place in _editable(prefix)]
    return list(dict.fromkeys([*names, *prefixes, *roots, *editable]))


def _names(program: Path, write: Sequence[Path]) -> list[Path]:
    """A program by all its names: links lead to it."""
    found = [program]
    while found[-1].is_symlink() and not beneath(found[-1], write) and len(found) < _MAX_LINKS:
        found.append(Path(os.path.normpath(found[-1].parent / found[-1].readlink())))
    return found


def _prefixes(name: Path) -> Iterator[Path]:
    """The installations that a program is of: a virtual environment, and what that is made of."""
    prefix = name.parent.parent
    if name.parent.name == "bin" and any(any(prefix.glob(mark)) for mark in _PREFIX_MARKS):
        yield prefix
        yield from (each for each in _behind(prefix) if any(each.glob("lib/python*")))


def _behind(environment: Path) -> Iterator[Path]:
    """The installation of Python behind a virtual environment (PEP 405), if what that says is true."""
    with suppress(OSError, UnicodeDecodeError):
        for line in (environment / "pyvenv.cfg").read_text("utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home":
                yield Path(value.strip()).parent
                yield Path(value.strip()).parent.resolve()


def _editable(prefix: Path) -> Iterator[Path]:
    """Where packages that are developed in place stand (PEP 610)."""
    for file in prefix.glob("lib/python*/site-packages/*.dist-info/direct_url.json"):
        with suppress(OSError, ValueError, AttributeError, TypeError):
            about = json.loads(file.read_text("utf-8"))
            if about["dir_info"].get("editable"):
                yield Path(about["url"].removeprefix("file://"))


def _package_roots(script: Path) -> Iterator[Path]:
    """The package that a script is of; Node looks for others in `node_modules` of the folders above it."""
    if not script.is_file() or any(folder in script.parents for folder in SYSTEM):
        return
    if "node_modules" in script.parts:
        yield Path(*script.parts[: script.parts.index("node_modules") + 1])
    yield next(
        (each for each in script.parents if any((each / mark).is_file() for mark in _PACKAGE_MARKS)), script.parent
    )
