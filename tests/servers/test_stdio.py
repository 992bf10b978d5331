"""A server as a child process: every line comes through, and nothing of it outlives its channel."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

import anyio
import pytest
from tests.cli.tiny_project import wait_until
from tests.servers.talking import Wire, faulty, place, python

from mcptrials.errors import IncompleteError, ServerError
from mcptrials.protocols import Place, ServerExit
from mcptrials.servers.channel import StdioChannel
from mcptrials.servers.stdio import StdioServer

pytestmark = pytest.mark.anyio


async def closed(server: StdioServer, folder: Path) -> ServerExit:
    """How a server ends that was opened, said one thing, and was closed."""
    with anyio.fail_after(20):
        async with server.open(place(folder)) as channel:
            await channel.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            await channel.receive()
        exit_ = channel.exited()
    assert exit_
    return exit_


async def lines(channel: StdioChannel) -> list[bytes]:
    found = []
    try:
        while True:
            found.append(await channel.receive())
    except EOFError:
        return found


def running(marker: str) -> list[int]:
    """Processes whose environment names a directory."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and marker.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def sleeping(folder: Path) -> set[str]:
    """Processes as the server that misbehaves starts them there, of whatever parent, session and environment."""
    command = b"sleep\x00600\x00"
    found: set[str] = set()
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdigit() and (each / "cmdline").read_bytes() == command:
                found |= {each.name} if (each / "cwd").readlink() == folder else set()
    return found


async def test_lines_come_as_they_were_written(tmp_path: Path) -> None:
    program = r"""import sys; sys.stdout.buffer.write(b'one\n\ntwo\r\n\xff\xe2\x80\xa8\x85\x00three\nrest')"""
    with anyio.fail_after(10):
        async with python(program).open(place(tmp_path)) as channel:
            assert await lines(channel) == [b"one", b"", b"two", b"\xff\xe2\x80\xa8\x85\x00three", b"rest"]


async def test_every_frame_goes_to_the_wire_log_also_those_of_the_end(tmp_path: Path) -> None:
    program = "import sys; print(input(), flush=True); sys.stdin.read(); print('bye')"
    wire = Wire()
    with anyio.fail_after(10):
        async with python(program).open(place(tmp_path, wire)) as channel:
            await channel.send(b"hello")
            assert await channel.receive() == b"hello"
    assert wire.frames == [("out", b"hello"), ("in", b"hello"), ("in", b"bye")]
    assert wire.closed


async def test_a_line_of_20_megabytes_is_read_in_under_a_second(tmp_path: Path) -> None:
    program = "import sys; line = 'x' * (20 << 20); input(); print(line, flush=True); sys.stdin.read()"
    with anyio.fail_after(20):
        async with python(program).open(place(tmp_path)) as channel:
            await channel.send(b"now")
            began = time.process_time()
            line = await channel.receive()
            spent_s = time.process_time() - began
    assert len(line) == 20 << 20
    assert spent_s < 1


async def test_a_message_over_the_bound_is_refused_and_not_kept(tmp_path: Path) -> None:
    program = "import sys; [sys.stdout.write('x' * (1 << 20)) for _ in range(80)]; sys.stdin.read()"
    with anyio.fail_after(20):
        async with python(program).open(place(tmp_path)) as channel:
            with pytest.raises(ServerError, match="one message is larger than 64 MiB") as caught:
                await channel.receive()
    assert caught.value.cause == "contract_violation"


async def test_a_command_that_does_not_exist_is_a_failed_start_that_names_it(tmp_path: Path) -> None:
    server = StdioServer(name="tracker", command="no-such-command-anywhere")
    with pytest.raises(ServerError, match="server 'tracker': cannot start 'no-such-command-anywhere'") as caught:
        async with server.open(place(tmp_path)):
            pass
    assert caught.value.cause == "server_start"


async def test_a_working_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    server = StdioServer(name="tracker", command="{python}", cwd="nowhere")
    with pytest.raises(ServerError, match="nowhere"):
        async with server.open(place(tmp_path)):
            pass


async def test_a_server_that_ends_with_its_input_is_closed(tmp_path: Path) -> None:
    exit_ = await closed(faulty(), tmp_path)
    assert (exit_.how, exit_.exit_code, exit_.left_processes) == ("closed", 0, 0)


async def test_a_server_that_ignores_the_end_of_its_input_is_terminated(tmp_path: Path) -> None:  # C03
    exit_ = await closed(faulty("ignore_eof"), tmp_path)
    assert (exit_.how, exit_.exit_code) == ("terminated", -15)
    assert 2000 <= exit_.ms < 4000


async def test_a_server_that_is_at_work_when_its_time_is_over_gets_more(tmp_path: Path) -> None:
    burns = "while time.process_time() - begun < 2.5: pass"
    program = f"import sys, time; print(input(), flush=True); sys.stdin.read(); begun = time.process_time()\n{burns}"
    exit_ = await closed(python(program), tmp_path)
    assert (exit_.how, exit_.exit_code) == ("closed", 0)
    assert exit_.ms >= 2500


async def test_a_server_that_ignores_sigterm_too_is_killed(tmp_path: Path) -> None:
    exit_ = await closed(faulty("ignore_eof", "ignore_term"), tmp_path)
    assert (exit_.how, exit_.exit_code) == ("killed", -9)


async def test_a_server_that_ended_by_itself_is_told_by_its_exit_code(tmp_path: Path) -> None:
    for code, how in ((3, "crashed"), (0, "closed")):
        with anyio.fail_after(10):
            async with python(f"raise SystemExit({code})").open(place(tmp_path)) as channel:
                assert await lines(channel) == []
                assert await channel.settle() == code
        exit_ = channel.exited()
        assert exit_
        assert (exit_.how, exit_.exit_code) == (how, code)


@pytest.mark.parametrize("fault", ["grandchild", "stray", "daemon"])
async def test_what_a_server_started_does_not_outlive_it(fault: str, tmp_path: Path) -> None:  # C04
    exit_ = await closed(faulty(fault), tmp_path)
    assert (exit_.how, exit_.left_processes) == ("closed", 1)
    assert running(str(tmp_path)) == []
    assert sleeping(tmp_path) == set()


async def test_what_a_crashed_server_started_does_not_outlive_it(tmp_path: Path) -> None:
    program = "import subprocess, os; subprocess.Popen(['sleep', '600'], start_new_session=True); os._exit(3)"
    with anyio.fail_after(10):
        async with python(program).open(place(tmp_path)) as channel:
            await channel.settle()
    exit_ = channel.exited()
    assert exit_
    assert (exit_.how, exit_.left_processes) == ("crashed", 1)
    assert running(str(tmp_path)) == []


HOLDS = "import os, subprocess; subprocess.Popen(['sleep', '60'])\n"


@pytest.mark.parametrize("says", ["", "print('ready', flush=True)"])
async def test_a_server_that_is_gone_has_ended_its_output_though_a_child_of_it_holds_that_open(
    says: str, tmp_path: Path
) -> None:  # C04, C06
    with anyio.fail_after(5):
        async with python(f"{HOLDS}{says}\nos._exit(3)").open(place(tmp_path)) as channel:
            if says:
                assert await channel.receive() == b"ready"
            with pytest.raises(EOFError):
                await channel.receive()
            assert await channel.settle() == 3


async def test_a_command_that_starts_the_server_and_goes_away_is_not_its_end(tmp_path: Path) -> None:
    serves = "import sys, time; line = input(); time.sleep(0.5); print(line, flush=True); input()"
    starts = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {serves!r}])"
    with anyio.fail_after(10):
        async with python(starts).open(place(tmp_path)) as channel:
            await channel.send(b"hi")
            assert await channel.receive() == b"hi"


@pytest.mark.parametrize("fault", ["stray", "daemon"])
async def test_one_server_closed_leaves_what_its_neighbour_started(fault: str, tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with faulty(fault).open(place(tmp_path)) as first:
            await first.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            await first.receive()
            wait_until(lambda: bool(sleeping(tmp_path)), "it started its process")
            kept = sleeping(tmp_path)
            assert (await closed(faulty(fault), tmp_path)).left_processes == 1
            assert kept <= sleeping(tmp_path)
    exit_ = first.exited()
    assert exit_
    assert exit_.left_processes == 1
    assert not sleeping(tmp_path)
    assert running(str(tmp_path)) == []


async def test_a_process_that_its_parent_never_took_note_of_is_not_left_running(tmp_path: Path) -> None:
    program = "import os; os.fork() or os._exit(0); print('ready', flush=True); input()"
    with anyio.fail_after(10):
        async with python(program).open(place(tmp_path)) as channel:
            assert await channel.receive() == b"ready"
    exit_ = channel.exited()
    assert exit_
    assert exit_.left_processes == 0


async def test_a_server_that_cannot_stop_writing_still_ends_with_its_input(tmp_path: Path) -> None:
    program = "import sys; print('ready', flush=True); sys.stdin.read(); sys.stdout.write(('x' * 999 + '\\n') * 5000)"
    wire = Wire()
    with anyio.fail_after(20):
        async with python(program).open(place(tmp_path, wire)) as channel:
            await channel.receive()
    exit_ = channel.exited()
    assert exit_
    assert (exit_.how, exit_.exit_code) == ("closed", 0)
    assert len(wire.frames) == 1 + 5000


async def test_ten_megabytes_of_stderr_neither_block_the_server_nor_are_kept(tmp_path: Path) -> None:
    exit_ = await closed(faulty("flood_stderr=10"), tmp_path)
    assert exit_.how == "closed"
    assert exit_.stderr_bytes == 149_797 * 10 * 7
    assert len(exit_.stderr_tail) < 40_000
    assert exit_.stderr_tail.startswith("stderr\nstderr\n")
    assert exit_.stderr_tail.endswith("stderr\nstderr\n")
    assert "bytes left out ...]" in exit_.stderr_tail


async def test_the_last_words_on_stderr_are_kept_when_the_trial_is_cancelled(tmp_path: Path) -> None:
    program = "import sys; print('ready', flush=True); sys.stdin.read(); sys.stderr.write('last words')"
    with anyio.fail_after(10):
        with anyio.CancelScope() as scope:
            async with python(program).open(place(tmp_path)) as channel:
                await channel.receive()
                scope.cancel()
                await anyio.sleep_forever()
    exit_ = channel.exited()
    assert exit_
    assert (exit_.how, exit_.stderr_tail) == ("closed", "last words")


async def test_a_server_that_never_reads_does_not_hold_up_its_end(tmp_path: Path) -> None:
    program = "import time; print('ready', flush=True); time.sleep(600)"
    with anyio.fail_after(20):
        async with python(program).open(place(tmp_path)) as channel:
            await channel.receive()
            with anyio.move_on_after(0.2) as scope:
                await channel.send(b"x" * (4 << 20))
            assert scope.cancelled_caught
    exit_ = channel.exited()
    assert exit_
    assert exit_.how == "terminated"


async def test_sending_to_a_server_that_is_gone_is_a_broken_resource(tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with python("pass").open(place(tmp_path)) as channel:
            await channel.settle()
            for _ in range(2):  # the system takes the first: it does not know yet
                with suppress(anyio.BrokenResourceError):
                    await channel.send(b"hello")
            with pytest.raises(anyio.BrokenResourceError):
                await channel.send(b"hello")


async def test_a_server_gets_what_a_process_needs_and_a_home_of_its_own_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # C12, C49
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-of-the-harness")
    program = "import os, json; print(json.dumps(dict(os.environ)))"
    env = {"TOKEN": "t", "DB": "{trial_dir}/a.db", "OTHER": "{other}"}
    server = python(program).model_copy(update={"env": env})
    with anyio.fail_after(10):
        async with server.open(place(tmp_path)) as channel:
            given = json.loads(await channel.receive())
    assert "PROVIDER_API_KEY" not in given
    assert (given["TOKEN"], given["DB"], given["OTHER"]) == ("t", f"{tmp_path}/a.db", "{other}")
    assert given["PATH"] == os.environ["PATH"]
    assert given["HOME"] == str(tmp_path / ".home")
    assert Path(given["TMPDIR"]).is_relative_to(tmp_path)
    assert given["PYTHONUTF8"] == "1"


class FullDisk(Wire):
    """A wire log that fails from the second frame on."""

    def frame(self, direction: Literal["out", "in"], at_s: float, line: bytes) -> None:
        super().frame(direction, at_s, line)
        if len(self.frames) > 1:
            raise IncompleteError("no space left on device")


async def test_a_wire_log_that_fails_ends_the_work_and_leaves_no_process(tmp_path: Path) -> None:
    with anyio.fail_after(10), pytest.raises(IncompleteError):  # noqa: PT012 - raised by the second or in closing
        async with faulty("stray").open(place(tmp_path, FullDisk())) as channel:
            await channel.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            await channel.receive()
    assert running(str(tmp_path)) == []


async def test_a_wire_log_that_cannot_be_opened_starts_no_process(tmp_path: Path) -> None:
    def broken(server: str) -> Wire:
        raise IncompleteError(f"no log for {server}")

    with pytest.raises(IncompleteError):
        async with faulty().open(Place(tmp_path, tmp_path, broken)):
            pass
    assert running(str(tmp_path)) == []
