"""What a server written in Python imports, imported and used once before it starts. A part of the program `forking`."""

import ast
import importlib
import importlib.machinery
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_LIBRARY = Path(os.__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}


def preload(args: Sequence[str], modules: Sequence[str] | None) -> list[str]:
    """Imports the modules that are named, or those that a script, or a module after -m, imports; gives their names.

    Raises:
        Exception: of one that is named, whatever its import does. The others are for the trial to tell of.
    """
    if modules is not None:
        done = [importlib.import_module(module).__name__ for module in modules]
    else:
        done = [module for module, names in imports_of(args).items() if _import(module, names)]
    _warm()
    return done


def imports_of(args: Sequence[str]) -> Mapping[str, set[str]]:
    """What it imports at its top with the names that it takes, and what its own files do that it imports there.

    Its own are all that are neither Python's nor installed, and of a module after -m those of its package: what they
    hold is new in every trial.
    """
    folder, package, todo = Path(args[0]).resolve().parent, None, [args[0]]
    if args[0] == "-m":
        folder, package = Path.cwd(), args[1].partition(".")[0]
        todo = [_file_of(f"{args[1]}.__main__", folder) or _file_of(args[1], folder) or ""]
    found: dict[str, set[str]] = {}
    seen = {""}
    while todo:
        if (file := todo.pop()) in seen:
            continue
        seen.add(file)
        for module, names in _top_imports(file):
            top = module.partition(".")[0]
            if top == package or _is_own(top, folder):
                todo += [_file_of(each, folder) or "" for each in (module, *(f"{module}.{name}" for name in names))]
            else:
                found.setdefault(module, set()).update(names)
    return found


def _top_imports(file: str) -> Iterator[tuple[str, list[str]]]:
    """Absolute ones; of a file that is not there or does not compile the trial tells."""
    try:
        body = ast.parse(Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, [alias.name for alias in node.names if alias.name != "*"]


def _spec_of(module: str, folder: Path) -> importlib.machinery.ModuleSpec | None:
    """Found without importing anything."""
    path, spec, name = [str(folder), *sys.path], None, ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or [])
    return spec


def _file_of(module: str, folder: Path) -> str | None:
    spec = _spec_of(module, folder)
    return spec.origin if spec and spec.has_location and str(spec.origin).endswith(".py") else None


def _is_own(top: str, folder: Path) -> bool:
    """What is not found on any path is built in, or missing."""
    spec = _spec_of(top, folder)
    places = [Path(place) for place in (spec.origin, *(spec.submodule_search_locations or ())) if place] if spec else []
    return bool(places) and not any(_LIBRARY in place.parents or _INSTALLED & {*place.parts} for place in places)


def _import(module: str, names: set[str]) -> bool:
    with suppress(Exception):
        loaded = importlib.import_module(module)
        for name in names:
            if hasattr(loaded, "__path__") and not hasattr(loaded, name):
                with suppress(ModuleNotFoundError):
                    importlib.import_module(f"{module}.{name}")
        return True
    return False


def _warm() -> None:
    """Uses the MCP SDK once, since its models are built when they are first used; in a thread, of whose event loop and
    context nothing is left. Logging is as it was before: the SDK's servers set it up when they are made."""
    if "mcp" not in sys.modules:
        return
    handlers, level = logging.root.handlers[:], logging.root.level
    thread = threading.Thread(target=_talk_alone)
    thread.start()
    thread.join()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def _talk_alone() -> None:
    with suppress(Exception):  # it costs time only
        importlib.import_module("anyio").run(_talk)


async def _talk() -> None:
    """By the second generation of the SDK, or the first, or the library that builds upon it."""
    mcp = importlib.import_module("mcp")
    if "fastmcp" in sys.modules:
        server, connect = sys.modules["fastmcp"].FastMCP("warm"), sys.modules["fastmcp"].Client
    elif hasattr(mcp, "Client"):
        server, connect = importlib.import_module("mcp.server").MCPServer("warm"), mcp.Client
    else:
        server = importlib.import_module("mcp.server.fastmcp").FastMCP("warm")
        connect = importlib.import_module("mcp.shared.memory").create_connected_server_and_client_session

    async def nothing(number: int = 0) -> int:
        return number

    server.tool()(nothing)
    async with connect(server) as client:
        await client.list_tools()
        await client.call_tool("nothing", {"number": 1})
