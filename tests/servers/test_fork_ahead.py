"""What is imported ahead of forking: what it leaves open, and what it says in the fork server's name."""

import os
import resource
import sys

import anyio
import pytest
from tests.servers.test_fork import World, lines, made_world  # noqa: F401 - a fixture

from mcptrials.errors import ServerError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
]


async def test_a_file_that_a_module_opened_ahead_is_no_file_of_the_scripts(world: World) -> None:
    (world.folder / "logs.py").write_text("log = open('/dev/null', 'w')\nlog.write('late')")
    script = """
import os, sys
sys.path.insert(0, os.getcwd())
import logs
with open(os.environ["HOME"] + "/own", "w+") as own:
    try:
        logs.log.flush()
    except OSError as exc:
        print(exc.strerror, flush=True)
    try:
        logs.log.close()
    except OSError:
        pass
    own.write("mine")
    own.seek(0)
    print(own.read(), flush=True)
"""
    server = await world.server(script, preload=["logs"], env={"PYTHONPATH": "{project_dir}"})
    assert (await lines(server, world.place()))[0] == ["Bad file descriptor", "mine"]


async def test_a_fork_server_cannot_have_us_end_a_process_that_is_not_its_own(world: World) -> None:
    """Since its sandbox does not let it do so itself."""
    async with await anyio.open_process([sys.executable, "-c", "input()"]) as other:
        mark = resource.prlimit(other.pid, 10)
        for named in (other.pid, os.getpid(), os.getppid(), 1, 0, 1 << 22, 999_999_999):
            (world.folder / "names.py").write_text(f"import os\nos.fork = lambda: {named}\n")
            server = await world.server("", preload=["names"], env={"PYTHONPATH": "{project_dir}"})
            with (
                anyio.fail_after(20),
                pytest.raises(ServerError, match=r"names a process that is|forks no more") as caught,
            ):
                async with server.open(world.place()):
                    pass
            assert caught.value.cause == "server_start"
        assert other.returncode is None
        assert resource.prlimit(other.pid, 10) == mark
        other.terminate()
