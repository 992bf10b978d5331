"""The sandbox of a server: what it can reach, how much it can use up, and what is said of that."""

import fcntl
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.tiny_project import SERVER, adds, asks, make_project, records, run_folder
from tests.servers.talking import Wire, talking

from mcptrials import lineage
from mcptrials.environment import TrialPlaces
from mcptrials.errors import ServerError, UsageError
from mcptrials.project import Project
from mcptrials.protocols import Place, ServerExit
from mcptrials.runner import run
from mcptrials.runner.confining import Confiner
from mcptrials.servers import landlock
from mcptrials.servers.confinement import Confined
from mcptrials.servers.sandbox import Sandbox
from mcptrials.servers.stdio import StdioServer
from mcptrials.servers.system_calls import filter_program

pytestmark = pytest.mark.anyio
needs_landlock = pytest.mark.skipif(landlock.abi() < landlock.MIN_ABI, reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(
    landlock.abi() < landlock.MIN_ABI or not filter_program(), reason="this kernel filters no system calls"
)

TRIES = """
import json, os, sys
def read(path): open(path).read(1)
def names(path): os.listdir(path)
def write(path): open(path, 'a').write('x')
def remove(path): os.remove(path)
def make(path): os.mkdir(path)
def move(path): os.rename(path, 'moved')
def link(path): os.link(path, os.environ['HOME'] + '/link')
def follow(path): link = os.environ['HOME'] + path.replace('/', '_'); os.symlink(path, link); read(link)
def empty(path): os.truncate(path, 0)
def end(pid): os.kill(int(pid), 0)
def spy(pid): open(f'/proc/{pid}/environ').read(1)
def starve(pid): import resource; resource.prlimit(int(pid), resource.RLIMIT_NOFILE, (7, 7))
def mark(pid): import resource; resource.prlimit(int(pid), 10, resource.getrlimit(10))
def unmark(_): import resource; resource.setrlimit(10, (-1, -1))
def save(_): import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99)); resource.prlimit(0, 0, (9, 9))
def ask(pid): import resource; resource.prlimit(int(pid), 7)
def keys(number): from ctypes import CDLL; CDLL(None).syscall(int(number), 11, -3, 0, 0) < 0 and 1 / 0
def type(path): os.open(path, os.O_RDWR | os.O_NOCTTY)
def run(path): os.spawnl(os.P_WAIT, path, path) == 0 or 1 / 0
for line in sys.stdin:
    what, target = json.loads(line)
    try:
        globals()[what](target)
        print('done', flush=True)
    except Exception as exc:
        print(exc.__class__.__name__, flush=True)
"""


@dataclass(frozen=True)
class World:
    """A project beside a user's home, and its trials."""

    home: Path
    project: Path
    places: TrialPlaces

    def server(self, program: str = TRIES, *args: str, **sandbox: Any) -> StdioServer:
        """As the runner makes it from the project file; `command` is the server's, and the rest of its sandbox."""
        command = str(sandbox.pop("command", sys.executable))
        keys = {"command": command, "args": ["-S", "-c", program, *args], "sandbox": {"mode": "auto"} | sandbox}
        file = self.project / "mcptrials.yaml"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"servers": {"hostile": keys}}))
        project = Project.load(file, environ={})
        config = project.config.servers_of("base")["hostile"]
        return StdioServer(
            name="hostile",
            command=str(config.command),
            args=config.args,
            confinement=Confiner(project, self.places).confinement("hostile", config, None),
        )

    def place(self) -> Place:
        return self.places.make(lambda _: Wire())


@pytest.fixture(name="world")
def made_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    home = tmp_path / "home"
    for file in (home / ".ssh/id_ed25519", home / "letters/private.txt", home / "work/eval/runs/r1/manifest.json"):
        file.parent.mkdir(parents=True)
        file.write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    project = make_project(home / "work/eval", [asks("one")], {"default": adds("5")})
    for name in ("code.txt", ".env", "suite/answers.json"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("[]")
    places = TrialPlaces.create(project)
    yield World(home, project, places)
    places.close()


async def tried(server: StdioServer, place: Place, *tries: tuple[str, Any]) -> list[str]:
    with anyio.fail_after(20):
        async with server.open(place) as channel:
            answers = []
            for each in tries:
                await channel.send(json.dumps([each[0], str(each[1])]).encode())
                answers.append((await channel.receive()).decode())
    return answers


async def ended(server: StdioServer, place: Place) -> ServerExit:
    with anyio.fail_after(30):
        async with server.open(place) as channel:
            with suppress(EOFError):
                while True:
                    await channel.receive()
    found = channel.exited()
    assert found
    return found


@needs_landlock
async def test_a_server_reads_nothing_of_the_user_of_the_evaluation_and_of_other_trials(world: World) -> None:
    other = world.place()
    (other.trial_dir / "state.db").write_text("x")
    project = world.project
    targets = [
        world.home / ".ssh/id_ed25519",
        world.home / "letters/private.txt",
        *(project / name for name in ("mcptrials.yaml", "tasks.yaml", "script.yaml", ".env", "runs/r1/manifest.json")),
        other.trial_dir / "state.db",
    ]
    tries = [(how, target) for target in targets for how in ("read", "follow")]
    assert set(await tried(world.server(), world.place(), *tries)) == {"PermissionError"}
    assert await tried(world.server(), world.place(), ("link", project / "tasks.yaml")) == ["OSError"]  # EXDEV
    lists = [("names", world.home), ("names", world.places.root), ("names", other.trial_dir)]
    assert set(await tried(world.server(), world.place(), *lists)) == {"PermissionError"}


@needs_landlock
async def test_what_stands_beside_task_files_is_hidden_with_them(world: World) -> None:
    file = world.project / "mcptrials.yaml"
    (world.project / "suite/tasks.json").write_text(json.dumps([asks("two")]))
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tasks": ["suite/tasks.json", "tasks.yaml"]}))
    answers = await tried(world.server(), world.place(), ("read", world.project / "suite/answers.json"))
    assert answers == ["PermissionError"]


@needs_landlock
async def test_a_server_reads_its_code_and_what_its_command_and_the_project_name(world: World) -> None:
    named, declared = world.home / "letters/private.txt", world.home / "work/data"
    declared.mkdir()
    (declared / "prices.csv").write_text("1")
    server = world.server(TRIES, f"--file={named}", read=["{project_dir}/../data"])
    reads: list[tuple[str, Any]] = [
        ("read", path) for path in (world.project / "code.txt", named, declared / "prices.csv", "/etc/passwd")
    ]
    assert await tried(server, world.place(), *reads) == ["done"] * 4
    assert await tried(server, world.place(), ("write", declared / "prices.csv")) == ["PermissionError"]


@needs_landlock
async def test_a_server_writes_its_trials_directory_and_nothing_else(world: World, tmp_path: Path) -> None:
    place, project = world.place(), world.project
    (place.trial_dir / "a").mkdir()
    (place.trial_dir / "b").write_text("x")
    inside: list[tuple[str, Any]] = [
        ("write", place.trial_dir / "state"),
        ("make", place.trial_dir / "folder"),
        ("write", "/dev/null"),
    ]
    inside += [("empty", place.trial_dir / "b"), ("remove", place.trial_dir / "b"), ("read", "/proc/self/status")]
    assert await tried(world.server(), place, *inside) == ["done"] * 6
    victim = project / "code.txt"
    outside: list[tuple[str, Any]] = [(how, victim) for how in ("write", "remove", "move", "empty", "link")]
    outside += [
        ("make", project / "x"),
        ("write", tmp_path / "x"),
        ("write", "/dev/shm/x"),
        ("write", world.home / "x"),
    ]
    answers = await tried(world.server(), world.place(), *outside)
    assert set(answers) <= {"PermissionError", "OSError"}  # a link into another folder is EXDEV
    assert victim.read_text() == "[]"


@needs_landlock
async def test_what_the_project_lets_a_server_write_it_writes(world: World) -> None:
    shared = world.home / "shared"
    shared.mkdir()
    assert await tried(world.server(write=[str(shared)]), world.place(), ("write", shared / "log")) == ["done"]


@needs_landlock
async def test_a_server_cannot_look_into_the_processes_of_others(world: World) -> None:
    answers = await tried(world.server(), world.place(), ("spy", os.getpid()), ("end", os.getpid()))
    assert answers == ["PermissionError", "PermissionError" if landlock.abi() >= 6 else "done"]


@needs_seccomp
async def test_a_server_sets_limits_of_itself_only_and_never_its_mark(world: World) -> None:
    """Else it could have the run end any process of the user as one that the server started."""
    with subprocess.Popen(["sleep", "60"]) as other:  # noqa: ASYNC220 - it only has to be there
        before = resource.prlimit(other.pid, resource.RLIMIT_NOFILE)
        tries = [(what, other.pid) for what in ("starve", "mark", "unmark", "ask", "save")]
        answers = await tried(world.server(), world.place(), *tries)
        assert answers == ["PermissionError", "PermissionError", "ValueError", "done", "done"]
        assert resource.prlimit(other.pid, resource.RLIMIT_NOFILE) == before
        assert other.poll() is None
        other.kill()


@needs_seccomp
async def test_what_a_server_starts_is_marked_before_it_can_start_anything(world: World) -> None:
    """Not only as soon as we get to it: its first process here is gone, and its second one's environment empty."""
    look = "['sh', '-c', 'grep file.locks /proc/self/limits'], {}"
    program = f"import os; os.fork() and os._exit(0); os.execve('/bin/sh', {look})"
    place = world.place()
    with anyio.fail_after(20):
        async with world.server(program).open(place) as channel:
            said = (await channel.receive()).decode()
    assert int(said.split()[3]) & -(1 << 22) == lineage.run_mark(place.trial_dir.parent)


@needs_seccomp
@pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls have other numbers")
async def test_a_server_reads_no_keys_of_the_user(world: World) -> None:
    assert await tried(world.server(), world.place(), ("keys", 250)) == ["ZeroDivisionError"]


@needs_landlock
async def test_a_server_reaches_no_terminal_in_which_the_user_types(world: World) -> None:
    controller, terminal = os.openpty()
    try:
        assert await tried(world.server(), world.place(), ("type", os.ttyname(terminal))) == ["PermissionError"]
    finally:
        os.close(controller)
        os.close(terminal)


@needs_landlock
async def test_no_sandbox_is_kept_by_what_a_server_starts(world: World) -> None:
    program = "import subprocess; print(subprocess.run(['cat', input()], capture_output=True).returncode, flush=True)"
    with anyio.fail_after(20):
        async with world.server(program).open(world.place()) as channel:
            await channel.send(str(world.home / ".ssh/id_ed25519").encode())
            assert await channel.receive() == b"1"


async def test_off_is_no_sandbox(world: World) -> None:
    server = world.server(mode="off")
    assert server.confinement is None
    assert await tried(server, world.place(), ("read", world.home / "letters/private.txt")) == ["done"]


async def test_every_place_for_a_programs_own_files_is_the_trials(world: World) -> None:
    place = world.place()
    names = ["HOME", "TMPDIR", "TMP", "TEMP"]
    names += [f"XDG_{kind}" for kind in ("CONFIG_HOME", "CACHE_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR")]
    program = f"import os; [print(os.environ[name], os.path.isdir(os.environ[name])) for name in {names}]"
    with anyio.fail_after(20):
        async with world.server(program).open(place) as channel:
            found = [(await channel.receive()).decode().split() for _ in names]
    assert all(Path(folder).is_relative_to(place.trial_dir) and there == "True" for folder, there in found)


async def test_the_launcher_leaves_environment_signals_and_descriptors_as_they_were(world: World) -> None:
    program = """if True:
        import os, signal
        kept = [name for name in os.environ if name.startswith('LC_')]
        status = dict(line.split(':', 1) for line in open('/proc/self/status'))
        print(kept, sorted(map(int, os.listdir('/proc/self/fd')))[:4], status['SigIgn'].strip(), flush=True)
    """
    said = []
    for mode in ("auto", "off"):
        with anyio.fail_after(20):
            async with world.server(program, mode=mode).open(world.place()) as channel:
                said.append(await channel.receive())
    assert said[0] == said[1]


async def test_a_command_that_is_not_there_is_named_as_without_a_sandbox(world: World) -> None:
    found = world.server()
    for command in ("no-such-command-anywhere", "./no-such-file"):
        server = found.model_copy(update={"command": command})
        with pytest.raises(ServerError, match=f"cannot start '{command}': No such file") as caught:
            async with server.open(world.place()):
                pass
        assert caught.value.cause == "server_start"


async def test_what_cannot_be_started_says_so_on_stderr(world: World) -> None:
    file = world.project / "tool"
    file.write_text("no program")
    file.chmod(0o755)
    server = world.server().model_copy(update={"command": str(file), "args": ()})
    exit_ = await ended(server, world.place())
    assert "cannot start" in exit_.stderr_tail
    assert "Exec format error" in exit_.stderr_tail


@pytest.mark.parametrize(
    ("program", "limits", "limit"),
    [
        ("x = bytearray(300 << 20)", {"memory_mb": 128}, "memory_mb"),
        (
            "f = open('/proc/self/fd/1', 'wb'); x = []\nwhile True: x.append(bytes(1 << 20))",
            {"memory_mb": 64},
            "memory_mb",
        ),
        ("while True: pass", {"cpu_seconds": 1}, "cpu_seconds"),
        ("import signal; signal.signal(25, signal.SIG_DFL)\nBIG", {"file_mb": 1}, "file_mb"),
        ("BIG", {"file_mb": 1}, "file_mb"),
        ("import os\nx = [os.pipe() for _ in range(99)]", {"open_files": 32}, "open_files"),
    ],
)
async def test_a_server_that_uses_up_too_much_is_ended_and_the_limit_named(
    program: str, limits: dict[str, int], limit: str, world: World
) -> None:
    big = "import os; f = open(os.environ['HOME'] + '/big', 'wb', 0)\nfor _ in range(9): f.write(bytes(1 << 20))"
    exit_ = await ended(world.server(program.replace("BIG", big), **limits), world.place())
    assert (exit_.how, exit_.limit) == ("crashed", limit)


async def test_a_server_that_starts_too_many_processes_is_ended_with_all_of_them(world: World) -> None:
    program = """if True:
        import os, time
        for _ in range(60):
            if os.fork() == 0:
                os.setsid()
                time.sleep(600)
        print(os.getpid(), flush=True)
        time.sleep(600)
    """
    place = world.place()
    exit_ = await ended(world.server(program, processes=20), place)
    assert (exit_.how, exit_.limit) == ("crashed", "processes")
    assert running(str(place.trial_dir)) == []


@needs_landlock
async def test_a_process_that_is_always_a_step_ahead_is_caught(world: World) -> None:
    """It forks and goes so fast that none of its ids is there any more when its turn comes in a list of them."""
    program = """if True:
        import fcntl, os, sys
        held = open(os.environ['HOME'] + '/held', 'w')
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fork() == 0:
            os.setsid()
            for step in range(100000):
                if os.fork(): os._exit(0)
                if step == 50: os.write(1, b'on its way' + bytes([10]))
    """
    place = world.place()
    with anyio.fail_after(20):
        async with world.server(program).open(place) as channel:
            assert await channel.receive() == b"on its way"
    with (place.trial_dir / ".home/held").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails as long as anybody has it


def running(marker: str) -> list[str]:
    """Processes whose environment names a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found += [str(path)] if marker.encode() in path.read_bytes() else []
    return found


async def test_a_server_within_its_limits_is_not_said_to_have_met_one(world: World) -> None:
    exit_ = await ended(world.server("raise SystemExit(3)"), world.place())
    assert (exit_.how, exit_.exit_code, exit_.limit) == ("crashed", 3, None)
    exit_ = await ended(world.server("raise MemoryError", memory_mb=None), world.place())
    assert exit_.limit is None


def test_what_a_project_insists_on_must_be_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)  # a kernel without it, which cannot be had here
    with pytest.raises(UsageError, match=r"servers\.hostile\.sandbox: this system has no Landlock"):
        world.server(mode="landlock")
    found = world.server().confinement
    assert isinstance(found, Confined)
    assert found.facts()["in_force"] == "limits"
    assert "it can read and write whatever you can" in found.told()


@pytest.mark.parametrize("key", ["read", "write"])
def test_a_declared_path_must_be_there(key: str, world: World) -> None:
    with pytest.raises(UsageError, match=f"servers.hostile.sandbox.{key}: there is no '.*nowhere'"):
        world.server(TRIES, **{key: ["nowhere"]})


@pytest.mark.parametrize(
    ("sandbox", "what"),
    [
        ({"mode": "container"}, "needs an 'image'"),
        ({"image": "x"}, "'image' goes with 'mode: container'"),
        ({"memory_mb": 1}, "greater than or equal to 16"),
        ({"mode": "jail"}, "mode"),
        ({"memory": 1}, "memory"),
    ],
)
def test_a_sandbox_that_cannot_be_is_refused_with_its_place(sandbox: dict[str, Any], what: str, world: World) -> None:
    with pytest.raises(UsageError, match=what):
        world.server(**sandbox)


def test_a_servers_own_sandbox_stands_in_the_place_of_the_projects(tmp_path: Path) -> None:
    servers = {"a": {"command": "x"}, "b": {"command": "x", "sandbox": "off"}, "c": {"python": "m:f"}}
    folder = make_project(
        tmp_path / "p", [asks("one")], {"default": adds("5")}, servers=servers, sandbox={"file_mb": 7}
    )
    found = Project.load(folder, environ={}).config.servers_of("base")
    assert found["a"].sandbox == Sandbox(file_mb=7)
    assert found["b"].sandbox == Sandbox(mode="off")
    assert found["c"].sandbox is None


def with_sum(action: str) -> list[str]:
    """Arguments that start the tiny server with another program in the place of its sum."""
    program = "import sys; source = open(sys.argv[1]).read(); assert SUM in source; exec(source.replace(SUM, ACTION))"
    texts = "SUM, ACTION = " + repr(('str(given["a"] + given["b"])', action)) + "\n"
    return ["-c", texts + program, str(SERVER)]


def test_a_trial_whose_server_met_a_limit_says_which_and_the_run_what_was_in_force(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": with_sum("str(len(bytes(1 << 29)))"), "sandbox": {"memory_mb": 200}}
    folder = make_project(tmp_path, [asks("sums")], {"sums": adds("5")}, servers={"tiny": server}, trials=1)
    result = run(Project.load(folder))
    (record,) = records(run_folder(folder))
    assert (record["verdict"], record["blame"], record["cause"]) == ("failed", "server", "limit:memory_mb")
    assert record["server_faults"] == ["call_transport_lost", "exit_code:1", "limit:memory_mb"]
    in_force = result.run.manifest["preflight"]["base"]["tiny"]["sandbox"]
    assert in_force["in_force"] == ("landlock" if landlock.abi() >= landlock.MIN_ABI else "limits")
    assert in_force["limits"] == {
        "cpu_seconds": 600,
        "memory_mb": 200,
        "file_mb": 1024,
        "processes": 512,
        "open_files": 4096,
    }


@needs_landlock
def test_no_answer_of_a_task_comes_out_of_a_tool(tmp_path: Path) -> None:
    steal = "open(os.path.join(os.getcwd(), 'tasks.yaml')).read()"
    server = {"command": sys.executable, "args": with_sum(steal)}
    folder = make_project(tmp_path, [asks("sums")], {"sums": adds("5")}, servers={"tiny": server}, trials=1)
    run(Project.load(folder))
    (record,) = records(run_folder(folder))
    assert record["cause"] == "crash"  # of the tiny server, whose tools catch nothing
    (wire,) = (run_folder(folder) / "transcripts").glob("*.jsonl")
    assert "PermissionError: [Errno 13] Permission denied" in wire.read_text()


async def test_a_server_that_meets_a_limit_at_its_start_is_told_by_it(world: World) -> None:
    server = world.server("while True: pass", cpu_seconds=1)
    with pytest.raises(ServerError, match=r"was ended by SIGXCPU \(limit 'cpu_seconds'\) before the handshake"):
        async with talking(server, world.place().trial_dir):
            pass
