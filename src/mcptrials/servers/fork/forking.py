"""The fork server: imports what a server written in Python needs, once, and forks a process for every trial.

A child process's own program, run by the server's interpreter, which need not have this package. What it is to do
stands as one JSON object in its last argument; requests come as descriptors over the socket that this names.
"""

import atexit
import ctypes
import gc
import importlib.machinery
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any

_FOLDER = Path(__file__).resolve().parent
_DEATH_SIGNAL = 1
"""Of prctl(2)."""
_CANNOT_START = 127
_NO_FILE = 2
"""What Python exits with when there is no such script."""
_LOOKS, _LOOK_S = 20, 0.025
"""At threads: one that has ended is counted for a moment more."""


def prepare(order: Mapping[str, Any]) -> list[str]:
    """Gives what was imported.

    Raises:
        RuntimeError: there are threads, which no forked process would have.
    """
    done: list[str] = runpy.run_path(str(_FOLDER / "preloading.py"))["preload"](order["args"], order["preload"])
    if others := _other_threads():
        raise RuntimeError(f"what is imported ahead starts threads ({others}), which no forked process would have")
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    gc.collect()
    gc.freeze()  # or each process would soon have a copy of all of it (gc.freeze's own documentation)
    return done


def _other_threads() -> str:
    """In a few words; those of libraries written in other languages have no names."""
    for _ in range(_LOOKS):
        number = len(os.listdir("/proc/self/task")) - 1  # noqa: PTH208 - names are all that is wanted
        if not number:
            return ""
        time.sleep(_LOOK_S)
    named = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
    return ", ".join(named) or f"{number} of a library"


def serve(control: socket.socket) -> dict[str, Any]:
    """Returns in forked processes only, with what they were asked to be; ends when nobody can ask any more."""
    children: dict[int, socket.socket] = {}
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    parent = os.getpid()
    while True:
        ready, _, _ = select.select([control.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 12)
            _report(children)
        if control.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, 1, 8)
        if not message:
            os._exit(0)
        try:
            pid = os.fork()
        except OSError as exc:
            pid = -(exc.errno or 0)
        status = socket.socket(fileno=descriptors.pop(3))
        if pid == 0:
            return _born(parent, status, descriptors)
        for each in descriptors:
            os.close(each)
        with suppress(OSError):
            status.sendall(b"%d\n" % pid)
        if pid > 0:
            children[pid] = status
        else:
            status.close()


def _report(children: dict[int, socket.socket]) -> None:
    """How those that ended did. Others are of what was imported."""
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with suppress(OSError), children.pop(pid) as told:
                told.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _born(parent: int, status: socket.socket, descriptors: Sequence[int]) -> dict[str, Any]:
    """Waits for what it is to be, which comes when it is known and marked."""
    os.setsid()
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told = b"".join(iter(lambda: status.recv(1 << 16), b""))
    if os.getppid() != parent or not told:
        os._exit(_CANNOT_START)
    for number in range(3):
        os.dup2(descriptors[number], number)
    return {**json.loads(told), "ruleset": descriptors[3] if descriptors[3:] else -1}


def become(asked: Mapping[str, Any], plain: Mapping[str, Any], launcher: Mapping[str, Any]) -> None:
    """Takes rights and limits from this process, and whatever is the fork server's.

    Args:
        plain: what this interpreter began with.
        launcher: the names of `launcher`, which does the same for processes that are started.
    """
    os.environ.clear()
    os.environ.update(asked["env"])
    if plain["lc_ctype"]:  # Python sets it when it starts and finds no other (PEP 538)
        os.environ.setdefault("LC_CTYPE", plain["lc_ctype"])
    os.umask(plain["umask"])
    os.chdir(asked["cwd"])
    setrlimit(RLIMIT_NOFILE, plain["files"])
    for each in filter(None, asked["limits"].split(",")):
        launcher["limit"](*map(int, each.split(":")))
    if asked["ruleset"] >= 0:
        launcher["restrict"](asked["ruleset"], b"")  # the filter of system calls is in force already
    _close_all(plain["held"])
    if "tempfile" in sys.modules:
        vars(sys.modules["tempfile"])["tempdir"] = None
    if "numpy.random" in sys.modules:  # Python's own generator sees to that itself
        vars(sys.modules["numpy.random"])["seed"]()
    if plain["gc"]:
        gc.enable()


def _descriptors() -> set[int]:
    """But for the streams, and the one by which they are listed."""
    listed = {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2}  # noqa: PTH208
    return {each for each in listed if Path(f"/proc/self/fd/{each}").is_symlink()}


def _close_all(held: Set[int]) -> None:
    """Numbers that imported modules hold stay taken, by what can be neither read nor written: what such a module still
    writes, or closes, would else be the file of the script that got its number."""
    nothing = os.open(os.devnull, os.O_PATH)
    for each in _descriptors() - {nothing}:
        os.close(each)
        if each in held:
            with suppress(OSError):  # above the limit, where no other will get its number
                os.dup2(nothing, each, inheritable=False)
    os.close(nothing)


def begin(args: Sequence[str]) -> None:
    """The script, or the module after -m, as the program of this process, which ends as a fresh interpreter does."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.orig_argv[1:] = args
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(Path.cwd() if args[0] == "-m" else Path(args[0]).resolve().parent))
    importlib.invalidate_caches()
    try:
        if args[0] == "-m":
            main.__dict__["__builtins__"] = __builtins__
            sys.argv[:] = ["-m", *args[2:]]
            runpy._run_module_as_main(args[1])  # type: ignore[attr-defined]  # what `python -m` calls
        else:
            sys.argv[:] = args
            _run_script(args[0], main)
    except Exception as exc:  # noqa: BLE001 - the interpreter shows it likewise, beside what is ours
        trace = exc.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(exc), exc.with_traceback(trace), trace)
        sys.exit(1)


def _run_script(name: str, main: types.ModuleType) -> None:
    path = str(Path.cwd() / name)
    try:
        source = Path(path).read_bytes()
    except OSError as exc:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {exc.errno}] {exc.strerror}\n")
        sys.exit(_NO_FILE)
    main.__file__, main.__loader__ = path, importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__["__cached__"] = None
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - it is the server


def _leave(ahead: list[types.ModuleType]) -> None:
    """The last thing that a forked process does but for destroying what is its own: to destroy what was imported ahead,
    which writes to most of the memory that it shares, took half of its time. What that may hold of files is written."""
    for each in gc.get_objects():  # of those that are not frozen
        if issubclass(type(each), io.IOBase):
            with suppress(Exception):
                each.flush()
    ours = {*map(id, ahead)}
    for name, module in [*sys.modules.items()]:
        if id(module) in ours and name not in ("sys", "builtins"):
            del sys.modules[name]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(ahead))


def main(order: Mapping[str, Any]) -> None:
    ahead: list[types.ModuleType] = []
    atexit.register(_leave, ahead)  # what was registered first is called last
    umask = os.umask(0o77)
    os.umask(umask)
    files = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (files[1], files[1]))  # one for each process that it forks
    plain: dict[str, Any] = {
        "lc_ctype": os.environ.get("LC_CTYPE"),
        "umask": umask,
        "gc": gc.isenabled(),
        "files": files,
    }
    if sys.path[:1] == [str(_FOLDER)]:
        del sys.path[0]
    launcher = runpy.run_path(str(_FOLDER.parent / "launcher.py"))
    control = socket.socket(fileno=order["control"])
    for number in (1, 2):  # since they began as pipes, as those of a server do, Python's streams take them for such
        os.dup2(order["said"], number)
    before = _descriptors()
    try:
        said: dict[str, Any] = {"ready": prepare(order)}
    except BaseException as exc:
        said = {"refused": f"{type(exc).__name__}: {exc}"}
        raise
    finally:
        control.sendall(json.dumps(said).encode() + b"\n")
    gc.disable()
    ahead += sys.modules.values()
    plain["held"] = _descriptors() - before
    asked = serve(control)
    try:
        become(asked, plain, launcher)
    except OSError as exc:
        sys.stderr.write(f"cannot start {asked['args'][0]!r}: {exc}\n")
        sys.stderr.flush()
        os._exit(_CANNOT_START)
    begin(asked["args"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
