"""Servers whose processes are forked: they tell themselves from no process that was started, and share nothing."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.projects import DONE, call, calls, play, write_project
from tests.servers.talking import Wire
from tests.servers.test_sdk_eras import OVER_STDIO, program

from mcptrials.environment import TrialPlaces
from mcptrials.errors import ServerError, UsageError
from mcptrials.project import Project
from mcptrials.protocols import Place, Server, ServerExit
from mcptrials.redaction import Redactor
from mcptrials.runner import RunOptions, run_async
from mcptrials.runner.serving import ServerMaker
from mcptrials.servers import forked, forked_process, landlock

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
]

TELLS = """
import gc, json, os, random, resource, signal, sys, tempfile, threading, warnings
import beside

beside.count += 1
try:
    os.mkdir(os.environ["HOME"] + "/seen")
except FileExistsError:
    beside.count += 100
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
mask = os.umask(0)
os.umask(mask)
print(json.dumps({
    "count": beside.count,
    "argv": sys.argv,
    "orig_argv": sys.orig_argv[1:],
    "executable": sys.executable,
    "path": sys.path,
    "file": __file__,
    "name": __name__,
    "main": vars(sys.modules["__main__"]) is globals(),
    "names": sorted(globals().keys() - {"__annotations__"}),
    "cwd": os.getcwd(),
    "environ": dict(os.environ),
    "temporary": tempfile.gettempdir(),
    "descriptors": sorted(map(int, set(os.listdir("/proc/self/fd")) & set("0123456789"))),
    "leader": os.getsid(0) == os.getpgid(0) == os.getpid(),
    "signals": [str(signal.getsignal(number)) for number in range(1, 32)],
    "blocked": status["SigBlk"], "ignored": status["SigIgn"], "caught": status["SigCgt"],
    "rights": [status[key] for key in ("NoNewPrivs", "CapBnd", "CapEff")],
    "filtered": status["Seccomp"],
    "umask": mask,
    "limits": [resource.getrlimit(number) for number in range(10) if number != resource.RLIMIT_NPROC],
    "gc": [gc.isenabled(), gc.get_threshold()],
    "streams": [
        [each.encoding, each.errors, each.line_buffering, each.seekable(), each.isatty(), each.fileno()]
        for each in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "threads": threading.active_count(),
    "filters": len(warnings.filters),
    "random": random.random(),
}), flush=True)
"""
BESIDE = "count = 0\n"
TRIES = """
import json, os, sys
def read(path): open(path).read(1)
def write(path): open(path, 'a').write('x')
def end(pid): os.kill(int(pid), 0)
def spy(pid): open(f'/proc/{pid}/environ').read(1)
def mark(_): import resource; resource.setrlimit(10, (-1, -1))
def fill(path): open(path, 'wb').write(bytes(1 << 22))
for line in sys.stdin:
    what, target = json.loads(line)
    try:
        globals()[what](target)
        print('done', flush=True)
    except (PermissionError, ValueError) as exc:
        print(exc.__class__.__name__, flush=True)
"""


@dataclass(frozen=True)
class World:
    """A project's folder and what makes its servers."""

    folder: Path
    places: TrialPlaces
    made: list[ServerMaker]

    async def server(self, source: str | None, isolation: str = "fork", **keys: Any) -> Server:
        """A server of a script `server.py`, with `beside.py` at its side."""
        (self.folder / "beside.py").write_text(BESIDE)
        if source is not None:
            (self.folder / "server.py").write_text(source)
        config = {"command": "{python}", "args": ["server.py"], "isolation": isolation} | keys
        project = write_project(self.folder, [DONE], servers={"snake": config})
        maker = ServerMaker(project, self.places, Redactor(project.secrets), print)
        self.made.append(maker)
        servers = await maker.make(project.config.servers_of("base"))
        return servers["snake"]

    def place(self) -> Place:
        return self.places.make(lambda _: Wire())


@pytest.fixture(name="world")
def made_world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, TrialPlaces.create(tmp_path), [])
    yield world
    for maker in world.made:
        maker.close()
    world.places.close()


async def lines(server: Server, place: Place, *said: Any) -> tuple[list[str], ServerExit]:
    """What it answers to each thing, or says by itself, and how it ends."""
    found = []
    with anyio.fail_after(30):
        async with server.open(place) as channel:
            with suppress(EOFError):
                for each in said:
                    await channel.send(json.dumps(each).encode())
                    found.append((await channel.receive()).decode())
                while not said:
                    found.append((await channel.receive()).decode())
    exited = channel.exited()
    assert exited
    return found, exited


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def fork_servers(root: Path) -> list[int]:
    """Those whose files are in a directory, which are the parents of all others there."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and os.fsencode(root) + b"/" in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if parent_of(pid) not in found]


@pytest.mark.parametrize("args", [["server.py", "--db", "{trial_dir}/x"], ["-m", "server", "-v"]])
@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_a_forked_process_tells_itself_from_no_started_one(args: list[str], sandbox: str, world: World) -> None:
    keys = {"args": args, "sandbox": sandbox, "env": {"OWN": "{trial_dir}", "PYTHONDONTWRITEBYTECODE": "1"}}
    place, told = world.place(), {}
    for isolation in ("spawn", "fork"):
        server = await world.server(TELLS, isolation, **keys)
        ((line,), exited) = await lines(server, place)
        assert exited.exit_code == 0, exited
        told[isolation] = json.loads(line)
        (place.trial_dir / ".home/seen").rmdir()
    temporary = {how: each.pop("temporary") for how, each in told.items()}
    assert all(Path(each).parent == place.trial_dir for each in temporary.values())
    for each, own in zip(told.values(), temporary.values(), strict=True):
        assert [each["environ"].pop(name) for name in ("TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR")] == [own] * 4
    assert told["fork"].pop("random") != told["spawn"].pop("random")
    for key, value in told["spawn"].items():
        assert told["fork"][key] == value, key


async def test_no_trial_sees_what_another_left_in_memory_or_at_home(world: World) -> None:
    server = await world.server(TELLS)
    told = [json.loads((await lines(server, world.place()))[0][0]) for _ in range(3)]
    assert [each["count"] for each in told] == [1, 1, 1]
    assert len({each["random"] for each in told}) == 3
    assert len({each["environ"]["HOME"] for each in told}) == 3


ENDINGS = (
    "import sys; sys.exit(3)",
    "import sys; sys.exit('no luck')",
    "print('said without an end', end='')",
    "def f(): raise KeyError('k')\nf()",
    "import atexit, sys\natexit.register(print, 'last', file=sys.stderr)\n1 / 0",
    "def f(:\n  pass",
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "import os; os.abort()",
    "import nowhere",
    "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print(__name__, flush=True))).start()",
    "class Last:\n  def __del__(self): print('last', flush=True)\nlast = Last()",
    None,
)
"""Scripts, and one that is missing."""


async def ways_to_end(world: World, isolation: str, *args: str) -> list[Any]:
    server = await world.server(None, isolation, args=[*args])
    found = []
    for source in ENDINGS:
        place = world.place()
        if source is not None:
            (place.trial_dir / "server.py").write_text(source)
        said, exited = await lines(server, place)
        found.append((said, exited.exit_code, exited.how, exited.stderr_tail.replace(str(place.trial_dir), "HERE")))
    return found


async def test_a_script_ends_as_in_a_started_process(world: World) -> None:
    args = ["{trial_dir}/server.py"]
    assert await ways_to_end(world, "fork", *args) == await ways_to_end(world, "spawn", *args)


async def test_what_was_written_but_not_closed_is_in_its_file_when_a_process_has_ended(world: World) -> None:
    source = "import json\nheld = open('one', 'w'); held.write('1')\njson.held = open('two', 'w'); json.held.write('2')"
    server, place = await world.server(source, cwd="{trial_dir}", args=["{project_dir}/server.py"]), world.place()
    assert (await lines(server, place))[1].exit_code == 0
    assert [(place.trial_dir / name).read_text() for name in ("one", "two")] == ["1", "2"]


@pytest.mark.parametrize("module", ["raises", "missing"])
async def test_a_module_ends_as_in_a_started_process(module: str, world: World) -> None:
    (world.folder / "raises.py").write_text("def f(): raise KeyError('k')\nf()")
    found = []
    for isolation in ("fork", "spawn"):
        said, exited = await lines(await world.server(None, isolation, args=["-m", module]), world.place())
        found.append((said, exited.exit_code, exited.stderr_tail))
    assert found[0] == found[1]


async def test_it_is_ended_as_a_started_one_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcptrials.servers.channel.EXIT_GRACE_S", 0.2)
    stays = "import signal, subprocess\n{}\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    stays += "print('up', flush=True)\nwhile True: signal.pause()"
    for what, how, code in (("", "terminated", -15), ("signal.signal(15, signal.SIG_IGN)", "killed", -9)):
        server = await world.server(stays.format(what))
        with anyio.fail_after(20):
            async with server.open(world.place()) as channel:
                assert await channel.receive() == b"up"
        exited = channel.exited()
        assert exited
        assert (exited.how, exited.exit_code, exited.left_processes) == (how, code, 1)


@pytest.mark.skipif(landlock.abi() < landlock.MIN_ABI, reason="this kernel has no Landlock")
async def test_a_forked_process_is_in_the_sandbox_of_its_own_trial(world: World, tmp_path: Path) -> None:
    server, mine, other = await world.server(TRIES), world.place(), world.place()
    (other.trial_dir / "state").write_text("other")
    tries = [
        ("write", mine.trial_dir / "state"),
        ("read", mine.trial_dir / "state"),
        ("read", other.trial_dir / "state"),
        ("write", other.trial_dir / "state"),
        ("write", tmp_path / "new"),
        ("read", tmp_path / "mcptrials.yaml"),
        ("spy", os.getpid()),
        ("mark", ""),
    ]
    answers, _ = await lines(server, mine, *((what, str(target)) for what, target in tries))
    assert answers[:3] == ["done", "done", "PermissionError"]
    assert answers[3:7] == ["PermissionError"] * 4
    assert answers[7] in ("PermissionError", "ValueError")


async def test_a_limit_that_it_meets_is_named(world: World) -> None:
    server, place = await world.server(TRIES, sandbox={"file_mb": 1}), world.place()
    with anyio.fail_after(20):
        async with server.open(place) as channel:
            await channel.send(json.dumps(["fill", str(place.trial_dir / "big")]).encode())
            with suppress(EOFError):
                await channel.receive()
    exited = channel.exited()
    assert exited
    assert exited.limit == "file_mb"


@pytest.mark.parametrize(
    ("args", "preloaded"),
    [
        (["server.py"], {"beside": False, "xml.dom": True, "csv": True, "fractions": True, "wave": True}),
        (["-m", "pack"], {"pack": True, "pack.other": False, "colorsys": True, "wave": True, "csv": False}),
        (["{trial_dir}/later.py"], {"csv": False}),
    ],
)
async def test_what_a_script_and_its_own_files_import_is_there_before_it_begins(
    args: list[str], preloaded: dict[str, bool], world: World
) -> None:
    tells = f"import sys; print(*[each in sys.modules for each in {[*preloaded]}], flush=True)\n"
    (world.folder / "pack").mkdir()
    files = {"__init__": "", "part": "import fractions", "other": "import wave"}
    for name, source in (files | {"__main__": f"{tells}import colorsys\nfrom pack import other"}).items():
        (world.folder / "pack" / f"{name}.py").write_text(source)
    server = await world.server(f"{tells}import beside, pack.part\nfrom xml import dom", args=args)
    (world.folder / "beside.py").write_text("import csv\nfrom pack import other\ntry: import nowhere\nexcept: pass")
    place = world.place()
    (place.trial_dir / "later.py").write_text(f"{tells}import csv")
    (said,), exited = await lines(server, place)
    assert exited.exit_code == 0, exited
    assert said == " ".join(map(str, preloaded.values()))


async def test_what_a_fork_server_prints_while_it_imports_is_no_servers(world: World) -> None:
    (world.folder / "noisy.py").write_text("print('noise', end='')")
    server = await world.server("print('mine')", preload=["noisy"], env={"PYTHONPATH": str(world.folder)})
    said, exited = await lines(server, world.place())
    assert (said, exited.stderr_tail) == (["mine"], "")


async def test_many_are_forked_at_a_time_and_none_is_left(world: World) -> None:
    source = "import os, sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()"
    server = await world.server(source, sandbox={"open_files": 16})
    pids: list[int] = []

    async def one() -> None:
        async with server.open(world.place()) as channel:
            pids.append(int(await channel.receive()))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(30):
                tasks.start_soon(one)
    assert len(set(pids)) == 30
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]  # noqa: ASYNC240, PTH110
    world.made[0].close()
    assert fork_servers(world.places.root) == []


async def test_when_the_fork_server_ends_its_processes_do_and_their_trials_are_told(world: World) -> None:
    server = await world.server("import os, sys\nprint(os.getppid(), flush=True)\nsys.stdin.read()")
    with anyio.fail_after(20):
        with pytest.raises(ServerError, match="server 'snake': its fork server ended while") as caught:  # noqa: PT012
            async with server.open(world.place()) as channel:
                os.kill(int(await channel.receive()), signal.SIGKILL)
                with pytest.raises(EOFError):
                    await channel.receive()
        assert caught.value.cause == "server_start"
        with pytest.raises(ServerError, match="server 'snake': its fork server takes no more requests"):
            async with server.open(world.place()):
                pass


async def test_a_fork_server_that_hangs_holds_up_no_trial_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked, "_FORK_S", 0.3)
    monkeypatch.setattr(forked_process, "_REPORT_S", 0.3)
    server = await world.server("import os, sys\nprint(os.getppid(), flush=True)\nsys.stdin.read()")
    with anyio.fail_after(20):
        with pytest.raises(ServerError, match="ended while"):
            async with server.open(world.place()) as channel:
                os.kill(int(await channel.receive()), signal.SIGSTOP)
        with pytest.raises(ServerError, match="its fork server forks no more"):
            async with server.open(world.place()):
                pass


@pytest.mark.parametrize(
    ("preload", "beside", "what"),
    [
        (["nowhere"], "", r"ModuleNotFoundError: No module named 'nowhere'; name other modules under 'preload'"),
        (["beside"], "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), name='busy', daemon=1)."
         "start()", r"what is imported ahead starts threads \(busy\)"),
        (["beside"], "raise SystemExit('gone')", "SystemExit: gone"),
        (["beside"], "import os; os._exit(1)", "ended at its start"),
        (["beside"], "import os, stat\nfor each in range(3, 30):\n  try: stat.S_ISSOCK(os.fstat(each).st_mode) and "
         "os.write(each, b'x' * 99 + b'\\n')\n  except OSError: pass", "does not answer, since what it imports"),
        (["beside"], "import os, stat\nfor each in range(3, 30):\n  while os.path.exists(f'/proc/self/fd/{each}') and "
         "stat.S_ISSOCK(os.fstat(each).st_mode): os.write(each, b'x' * 99)", "does not answer, since what it imports"),
    ],
)  # fmt: skip
async def test_what_cannot_be_imported_ahead_ends_a_run_before_it_begins(
    preload: list[str], beside: str, what: str, tmp_path: Path
) -> None:
    (tmp_path / "beside.py").write_text(beside)
    (tmp_path / "server.py").write_text("")
    server: dict[str, Any] = {"command": "{python}", "args": ["server.py"], "isolation": "fork", "preload": preload}
    server |= {"env": {"PYTHONPATH": "{project_dir}"}}
    project = write_project(tmp_path, [DONE], servers={"snake": server})
    with anyio.fail_after(30), pytest.raises(UsageError, match=f"server 'snake': its fork server .*{what}"):
        await run_async(project)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"command": "node", "args": ["x.js"]}, "goes with a Python interpreter, not with 'node'"),
        ({"command": "uvx", "args": ["x"]}, "not with 'uvx'; use 'spawn' or 'spare'"),
        ({"command": None, "url": "http://127.0.0.1:1"}, "goes with a Python interpreter, started by 'command'"),
        ({"args": []}, "needs a script, or -m and a module"),
        ({"args": ["-m"]}, "needs a script, or -m and a module"),
        ({"args": ["-u", "x.py"]}, "give options of Python as variables in 'env'"),
        ({"args": ["-c", "pass"]}, "needs a script"),
        ({"preload": ["os; x"]}, "preload"),
        ({"isolation": "spawn", "preload": ["os"]}, "'preload' goes with 'isolation: fork', not with 'spawn'"),
    ],
)
async def test_what_cannot_be_forked_is_refused_with_its_place(keys: dict[str, Any], what: str, tmp_path: Path) -> None:
    server: dict[str, Any] = {"command": "{python}", "args": ["server.py"], "isolation": "fork"} | keys
    given = {key: value for key, value in server.items() if value is not None}
    given = {key: value for key, value in given.items() if "url" not in given or key != "args"}
    with pytest.raises(UsageError, match=what) as caught:
        write_project(tmp_path, [DONE], servers={"snake": given})
    assert "snake" in str(caught.value)


async def test_nothing_is_forked_in_a_container(tmp_path: Path) -> None:
    keys = {"command": "python3", "args": ["x.py"], "isolation": "fork"}
    box = {"mode": "container", "image": "x", "program": "podman"}
    project = write_project(tmp_path, [DONE], servers={"snake": keys}, sandbox=box)
    with pytest.raises(UsageError, match=r"podman|does not go with a container"):
        await run_async(project)


@pytest.mark.parametrize("sdk", [2, 1])
async def test_servers_of_both_sdks_are_forked_with_their_models_built(sdk: int, tmp_path: Path) -> None:
    server = {"command": program(sdk, tmp_path, OVER_STDIO), "args": ["library.py"], "isolation": "fork"}
    played = await play(tmp_path, calls(call("pages", title="Emma")), DONE, servers={"sdk": server})
    assert played.verdict == ("passed", "none", None)
    assert ["448" in shown for shown in played.shown] == [True]
    [run] = (tmp_path / "runs").iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["servers"]["sdk"]["isolation"] == "fork"
    preloaded = {2: "mcp.server", 1: "mcp.server.fastmcp"}[sdk]
    assert manifest["preflight"]["base"]["sdk"]["fork"] == {"preloaded": [preloaded]}


async def test_trials_whose_fork_server_is_killed_are_owed_and_say_why(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(KILLS)
    server = {"command": "{python}", "args": ["server.py"], "isolation": "fork", "sandbox": "off"}
    played = await play(tmp_path, calls(call("kill")), DONE, servers={"snake": server})
    assert played.verdict == ("invalid", "server", "server_start")
    assert "its fork server ended while its processes ran" in json.dumps(played.record.model_dump())
    (tmp_path / "server.py").write_text(KILLS.replace("kill(", "getpgid(").replace(", 9)", ")"))
    with anyio.fail_after(30):
        resumed = await run_async(Project.load(tmp_path), RunOptions(resume=played.record.run_id))
    assert [each.verdict for each in resumed.run.records()] == ["passed"]


KILLS = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    if method == "initialize":
        info = {"name": "kills", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "kill", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        os.kill(os.getppid(), 9)
        result = {"content": []}
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}))
        sys.stdout.flush()
        continue
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
