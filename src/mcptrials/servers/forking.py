"""The fork server: imports what a server written in Python needs, once, then forks a process for every trial.

A child process's own program, run by the server's interpreter, which need not have this package. What it is to do
stands as one JSON object in its last argument; requests come as descriptors over the socket that the object names.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
if sys.path[:1] == [_FOLDER]:  # where `http` and `token` are others than Python's
    del sys.path[0]

# ruff: noqa: E402
import ast
import ctypes
import gc
import importlib
import importlib.machinery
import json
import runpy
import select
import signal
import socket
import threading
import types
from contextlib import suppress

_DEATH_SIGNAL = 1
"""Of prctl(2)."""
_CANNOT_START = 127
_NO_FILE = 2
"""What Python exits with when there is no such script."""
_INSTALLED = ("site-packages", "dist-packages")
_THREADS_S = 2.0
"""How long a thread that is about to end may take."""


# --- what is imported ahead ------------------------------------------------------------------------------------------


def imports_of(args):
    """What a script, or a module after -m, imports at its top, and so do its own files that it imports there."""
    if args[0] == "-m":
        folder = os.getcwd()
        todo = [_file_of(f"{args[1]}.__main__", folder) or _file_of(args[1], folder)]
        own = args[1].partition(".")[0]
    else:
        folder, own, todo = os.path.dirname(os.path.realpath(args[0])), "", [args[0]]
    found, seen = {}, set()
    while todo:
        file = todo.pop()
        if file is None or file in seen:
            continue
        seen.add(file)
        for module, names in _top_imports(file):
            top = module.partition(".")[0]
            if top != own and not _is_own(top, folder):
                found.setdefault(module, set()).update(names)
            else:
                todo += [_file_of(each, folder) for each in (module, *(f"{module}.{name}" for name in names))]
    return found


def _top_imports(file):
    """Absolute ones; a file that is not there or does not compile is for the trial to tell of."""
    try:
        with open(file, "rb") as source:
            body = ast.parse(source.read()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and node.module != "__future__":
            yield node.module, [alias.name for alias in node.names if alias.name != "*"]


def _spec_of(module, folder):
    """Found without importing anything."""
    path, spec, name = [folder, *sys.path], None, ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations or []
    return spec


def _file_of(module, folder):
    spec = _spec_of(module, folder)
    return spec.origin if spec and spec.has_location and spec.origin.endswith(".py") else None


def _is_own(top, folder):
    """Whether a module is neither Python's nor installed: it belongs to the server, and is new in every trial."""
    if top in sys.builtin_module_names:
        return False
    spec = _spec_of(top, folder)
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    library = os.path.dirname(os.__file__) + os.sep
    return not any(
        place and (place.startswith(library) or any(each in place.split(os.sep) for each in _INSTALLED))
        for place in places
    ) and not (spec and spec.origin in ("built-in", "frozen"))


def import_all(found):
    """What cannot be imported is for the trial to tell of."""
    for module, names in found.items():
        with suppress(Exception):
            loaded = importlib.import_module(module)
            for name in names:
                if hasattr(loaded, "__path__") and not hasattr(loaded, name):
                    with suppress(ModuleNotFoundError):
                        importlib.import_module(f"{module}.{name}")
            yield module


# --- what is used once -----------------------------------------------------------------------------------------------


def warm():
    """Uses the MCP SDK once, since it builds its models when they are first used; in a thread, whose event loop and
    context nobody sees. Logging is left as it was: the SDK's servers set it up when they are made."""
    if "mcp" not in sys.modules:
        return
    logging = importlib.import_module("logging")
    handlers, level = logging.root.handlers[:], logging.root.level
    thread = threading.Thread(target=_warm)
    thread.start()
    thread.join()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def _warm():
    with suppress(Exception):  # it costs time only
        importlib.import_module("anyio").run(_talk)


async def _talk():
    mcp = importlib.import_module("mcp")
    if "fastmcp" in sys.modules:
        server, connect = sys.modules["fastmcp"].FastMCP("warm"), sys.modules["fastmcp"].Client
    elif hasattr(mcp, "Client"):
        server, connect = importlib.import_module("mcp.server").MCPServer("warm"), mcp.Client
    else:
        server = importlib.import_module("mcp.server.fastmcp").FastMCP("warm")
        connect = importlib.import_module("mcp.shared.memory").create_connected_server_and_client_session

    @server.tool()
    async def nothing(number: int = 0) -> int:
        return number

    async with connect(server) as client:
        await client.list_tools()
        await client.call_tool("nothing", {"number": 1})


def prepare(args, preload):
    """Gives what was imported.

    Raises:
        Exception: a module that is asked for cannot be imported.
        RuntimeError: there are threads, which no forked process would have.
    """
    if preload is None:
        done = list(import_all(imports_of(args)))
    else:
        done = [importlib.import_module(module).__name__ for module in preload]
    warm()
    if others := _other_threads():
        raise RuntimeError(f"what is imported ahead starts threads ({others}), which no forked process would have")
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    gc.collect()
    gc.freeze()
    return done


def _other_threads():
    """In a few words; those of libraries have no names here."""
    named = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
    waited = select.poll()
    for _ in range(20):
        number = len(os.listdir("/proc/self/task")) - 1
        if not number:
            return ""
        waited.poll(1000 * _THREADS_S / 20)
    return ", ".join(named) or f"{number} of a library"


# --- one process per request -----------------------------------------------------------------------------------------


def serve(control):
    """Returns in forked processes only: what they were asked to be. Ends with who asks."""
    children = {}
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    parent = os.getpid()
    while True:
        ready = select.select([control, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _report(children)
        if control not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, 1, 8)
        if not message:
            os._exit(0)
        status = socket.socket(fileno=descriptors[3])
        try:
            pid = os.fork()
        except OSError as exc:
            pid = -exc.errno
        if pid == 0:
            return _born(parent, status, descriptors)
        with suppress(OSError):
            status.sendall(b"%d\n" % pid)
        for each in descriptors[:3] + descriptors[4:]:
            os.close(each)
        if pid > 0:
            children[pid] = status
        else:
            status.close()


def _report(children):
    """How those that ended did."""
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with suppress(OSError), children.pop(pid) as told:
                told.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _born(parent, status, descriptors):
    """The forked process, until it is told what to be: that is when others know of it."""
    os.setsid()
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told = b"".join(iter(lambda: status.recv(1 << 16), b""))
    if os.getppid() != parent or not told:
        os._exit(_CANNOT_START)
    for number in range(3):
        os.dup2(descriptors[number], number)
    return {**json.loads(told), "ruleset": descriptors[4] if descriptors[4:] else -1}


def become(asked, plain, launcher):
    """Takes rights and limits from itself, and all that is of the fork server.

    Args:
        plain: what this interpreter began with.
        launcher: the names of `launcher.py`, which does the same for processes that are started.
    """
    os.environ.clear()
    os.environ.update(asked["env"])
    if plain["lc_ctype"]:  # Python sets it at its start where it has no other
        os.environ.setdefault("LC_CTYPE", plain["lc_ctype"])
    os.umask(plain["umask"])
    os.chdir(asked["cwd"])
    for each in filter(None, asked["limits"].split(",")):
        launcher["limit"](*map(int, each.split(":")))
    if asked["ruleset"] >= 0:
        launcher["restrict"](asked["ruleset"], b"")  # the filter of system calls is in force already
    for each in os.listdir("/proc/self/fd"):
        if int(each) > 2:
            with suppress(OSError):
                os.close(int(each))
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None
    if "numpy.random" in sys.modules:  # Python's own generator sees to that itself
        sys.modules["numpy.random"].seed()
    if plain["gc"]:
        gc.enable()


def begin(args):
    """The script, or the module after -m, as the program of this process.

    Raises:
        SystemExit: with what a fresh interpreter would end with.
    """
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    sys.orig_argv[1:] = args
    first = os.getcwd() if args[0] == "-m" else os.path.dirname(os.path.realpath(args[0]))
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, first)
    importlib.invalidate_caches()
    try:
        if args[0] == "-m":
            sys.argv[:] = ["-m", *args[2:]]
            runpy._run_module_as_main(args[1])
        else:
            sys.argv[:] = args
            _run_script(args[0], main)
    except Exception as exc:
        trace = exc.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(exc), exc.with_traceback(trace), trace)
        sys.exit(1)


def _run_script(path, main):
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as exc:
        sys.stderr.write(f"{sys.executable}: can't open file {os.path.abspath(path)!r}: {exc}\n")
        sys.exit(_NO_FILE)
    main.__file__, main.__cached__ = os.path.abspath(path), None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    exec(compile(source, main.__file__, "exec", dont_inherit=True), main.__dict__)


def main(order):
    plain = {"lc_ctype": os.environ.get("LC_CTYPE"), "umask": os.umask(0o77), "gc": gc.isenabled()}
    os.umask(plain["umask"])
    launcher = runpy.run_path(os.path.join(_FOLDER, "launcher.py"))
    control = socket.socket(fileno=order["control"])
    for number in (1, 2):  # since they began as pipes, as those of a server do, Python's streams take them for such
        os.dup2(order["said"], number)
    try:
        said = {"ready": prepare(order["args"], order["preload"])}
    except BaseException as exc:
        said = {"refused": f"{type(exc).__name__}: {exc}"}
    control.sendall(json.dumps(said).encode() + b"\n")
    if "refused" in said:
        os._exit(1)
    gc.disable()
    asked = serve(control)
    try:
        become(asked, plain, launcher)
    except OSError as exc:
        sys.stderr.write(f"cannot start {asked['args'][0]!r}: {exc}\n")
        os._exit(_CANNOT_START)
    begin(asked["args"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
