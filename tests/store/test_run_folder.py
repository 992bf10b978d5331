"""The run folder: appended by one process, read by any."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.hand_made import BASE, manifest, record, run_of, task

from mcptrials.errors import IncompleteError, UsageError
from mcptrials.events import FinalAnswer
from mcptrials.record import Record
from mcptrials.redaction import Redactor
from mcptrials.store import Run, RunWriter, find_run, log_look
from mcptrials.trial import Trial

A_TRIAL = Trial(task_id="a", arm="x", number=1, seed=1, block=1)
NO_SECRETS = Redactor({})


def write(runs: Path, secrets: Redactor = NO_SECRETS, **keys: Any) -> RunWriter:
    return RunWriter.create(runs, manifest([task("a"), task("b")], **keys), secrets, Path("/nowhere"))


def again(folder: Path, trial_root: str = "/nowhere") -> RunWriter:
    return RunWriter(folder, NO_SECRETS, Path(trial_root))


def begin_trial(writer: RunWriter, trial: Trial = A_TRIAL) -> str:
    """A transcript with one event; gives its name."""
    files = writer.open_trial(trial)
    files.write(FinalAnswer(at_ms=0, answer="5", framing="tagged"))
    files.close()
    return files.transcript


def append(writer: RunWriter, *records: Record) -> None:
    for each in records:
        anyio.run(writer.append, each)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    with write(tmp_path) as writer:
        transcript = begin_trial(writer)
        append(writer, record("a", 1, transcript=transcript))
    run = Run.load(tmp_path / "by-hand")
    [found] = run.records()
    assert (found.task_id, found.passed, found.schema_version) == ("a", True, 1)
    [event] = run.transcript(found).events
    assert isinstance(event, FinalAnswer)
    assert [trial.task_id for trial in run.planned()].count("b") == 2
    assert (run.folder / "lock").read_text() == ""


def test_trials_come_as_a_frame_with_nothing_measured_left_empty(tmp_path: Path) -> None:
    run = run_of(
        tmp_path / "r",
        manifest([task("a"), task("b")]),
        [record("a", 1), record("a", 2, "failed"), record("b", 1, "invalid", cause="io")],
    )
    frame = run.trials_frame()
    assert list(frame.columns) == list(Record.model_fields)
    assert frame[["task_id", "trial", "passed"]].values.tolist() == [["a", 1, True], ["a", 2, False], ["b", 1, None]]
    assert frame["passed"].dropna().astype(bool).mean() == 0.5


def test_every_attempt_is_kept_and_the_first_that_was_scored_counts(tmp_path: Path) -> None:
    run = run_of(
        tmp_path / "r",
        manifest([task("a"), task("b")]),
        [
            record("a", 1, "invalid", cause="rate_limit"),
            record("a", 1, "failed", attempt=2),
            record("a", 1, "passed", attempt=3),
            record("b", 1, "invalid"),
            record("b", 1, "invalid", attempt=2, cause="io"),
        ],
    )
    assert len(list(run.attempts())) == 5
    assert {(r.task_id, r.verdict, r.attempt) for r in run.records()} == {("a", "failed", 2), ("b", "invalid", 2)}


def test_each_process_appends_to_a_file_of_its_own_and_no_file_is_made_for_nothing(tmp_path: Path) -> None:
    with write(tmp_path) as writer:
        append(writer, record("a", 1, transcript=begin_trial(writer)))
    folder = tmp_path / "by-hand"
    before = (folder / "records" / "w1.jsonl").read_bytes()
    again(folder).close()
    assert [path.name for path in folder.glob("records/*")] == ["w1.jsonl"]
    (folder / "records" / "w9.jsonl").touch()
    with again(folder) as writer:
        append(writer, record("b", 1, transcript=begin_trial(writer)))
    assert {path.name for path in folder.glob("records/*")} == {"w1.jsonl", "w9.jsonl", "w10.jsonl"}
    assert (folder / "records" / "w1.jsonl").read_bytes() == before
    assert [r.task_id for r in Run.load(folder).attempts()] == ["a", "b"]


def test_a_last_line_counts_if_only_its_end_is_missing_and_not_if_it_is_torn(tmp_path: Path) -> None:
    run = run_of(tmp_path / "r", manifest([task("a")]), [record("a", 1), record("a", 2)])
    file = run.folder / "records" / "w1.jsonl"
    text = file.read_text()
    file.write_text(text[:-1])
    assert [r.trial for r in run.records()] == [1, 2]
    file.write_text(text[:-2])
    assert [r.trial for r in run.records()] == [1]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    run = run_of(tmp_path / "r", manifest([task("a")]), [record("a", 1), record("a", 2)])
    file = run.folder / "records" / "w1.jsonl"
    file.write_text(file.read_text().replace('"trial":1', '"trial":NaN'))
    with pytest.raises(UsageError, match=re.escape(f"{file}:1: a record cannot be read; remove the damaged line")):
        run.records()


@pytest.mark.parametrize("count", [str(10**400), "-1"])
def test_a_count_that_cannot_be_is_damage(tmp_path: Path, count: str) -> None:
    run = run_of(tmp_path / "r", manifest([task("a")]), [record("a", 1, input_tokens=77)])
    file = run.folder / "records" / "w1.jsonl"
    file.write_text(file.read_text().replace('"input_tokens":77', f'"input_tokens":{count}'))
    with pytest.raises(UsageError, match="a record cannot be read"):
        run.records()


def test_a_manifest_without_an_arm_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the manifest is damaged: arms: "):
        run_of(tmp_path / "r", manifest([task("a")], arms=()), [record("a", 1)])


@pytest.mark.parametrize("place", ["records/w2.jsonl", "grades/1.jsonl", "manifest.json"])
@pytest.mark.parametrize("laid", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/tty")])
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path, place: str, laid: Callable[[Path], None]) -> None:
    run = run_of(tmp_path / "r", manifest([task("a")]), [record("a", 1)])
    odd = run.folder / place
    odd.parent.mkdir(exist_ok=True)
    odd.unlink(missing_ok=True)
    laid(odd)
    with pytest.raises(UsageError) as failure:
        Run.load(run.folder).records()
    assert failure.value.where == str(odd)


def test_a_link_to_records_that_are_gone_is_named(tmp_path: Path) -> None:
    run = run_of(tmp_path / "r", manifest([task("a")]), [record("a", 1)])
    (run.folder / "records" / "w2.jsonl").symlink_to("gone")
    with pytest.raises(UsageError, match="records cannot be read: No such file"):
        run.records()


def test_files_whose_names_only_look_like_numbers_count_for_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path / "r", manifest([task("a")]), [record("a", 1)])
    (run.folder / "records" / "w\u00b2.jsonl").touch()
    (run.folder / "grades").mkdir()
    (run.folder / "grades" / "\u00b2.jsonl").touch()
    assert [r.trial for r in Run.load(run.folder).records()] == [1]
    with again(run.folder) as writer:
        append(writer, record("a", 2, transcript=begin_trial(writer)))
    assert (run.folder / "records" / "w2.jsonl").exists()


def test_keys_of_a_later_version_are_kept(tmp_path: Path) -> None:
    run = run_of(tmp_path / "r", manifest([task("a")]), [record("a", 1, mood="good")])
    [found] = run.records()
    assert found.model_dump()["mood"] == "good"


def test_only_one_process_writes_and_its_end_frees_the_run_however_it_ends(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from mcptrials.store.lock import Lock;"
        "lock = Lock(Path(sys.argv[1]), {}); print('locked', flush=True); time.sleep(60)"
    )
    write(tmp_path).close()
    folder = tmp_path / "by-hand"
    with subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UsageError, match=rf"being written by process {holder.pid} on .*; wait for it or stop it"):
            again(folder)
        holder.kill()
    again(folder).close()


def claim(folder: Path, root: object) -> str | None:
    """Goes on with a run whose killed process named `root` as its own; gives what was left."""
    (folder / "lock").write_text(json.dumps({"pid": 1, "host": "h", "trial_root": root}))
    with again(folder) as writer:
        return writer.left


def test_trial_directories_of_a_killed_holder_are_removed(tmp_path: Path) -> None:
    root = Path(tempfile.mkdtemp(prefix="mcptrials-"))
    RunWriter.create(tmp_path, manifest([task("a")]), NO_SECRETS, root).close()
    (root / "t1").mkdir()
    assert claim(tmp_path / "by-hand", str(root)) is None
    assert not root.exists()
    assert claim(tmp_path / "by-hand", str(root)) is None


@pytest.mark.parametrize("content", [b"[1]", b"7", b"\xff\xfe", b"{", b"[" * 100_000, b"null"])
def test_a_lock_that_says_nothing_harms_nothing(tmp_path: Path, content: bytes) -> None:
    write(tmp_path).close()
    (tmp_path / "by-hand" / "lock").write_bytes(content)
    with again(tmp_path / "by-hand") as writer:
        assert writer.left is None


@pytest.mark.parametrize("mark", [None, "another-run", "link", "folder"])
def test_a_directory_that_does_not_bear_the_runs_mark_is_left_and_named(tmp_path: Path, mark: str | None) -> None:
    write(tmp_path).close()
    with tempfile.TemporaryDirectory(prefix="mcptrials-") as root:
        if mark == "link":
            (Path(root) / "file").write_text("by-hand")
            (Path(root) / ".run").symlink_to(Path(root) / "file")
        elif mark == "folder":
            (Path(root) / ".run").mkdir()
        elif mark:
            (Path(root) / ".run").write_text(mark)
        assert claim(tmp_path / "by-hand", root) == root
        assert Path(root).exists()


def test_only_what_stands_right_in_the_directory_for_temporary_files_is_removed(tmp_path: Path) -> None:
    write(tmp_path).close()
    elsewhere = tmp_path / "mcptrials-precious"
    elsewhere.mkdir()
    (elsewhere / ".run").write_text("by-hand")
    with tempfile.TemporaryDirectory(prefix="mcptrials-") as above, tempfile.TemporaryDirectory() as otherwise_named:
        link = Path(above) / "mcptrials-link"
        link.symlink_to(elsewhere)
        (Path(otherwise_named) / ".run").write_text("by-hand")
        for root in (elsewhere, link, Path(above) / "..", Path(otherwise_named)):
            assert claim(tmp_path / "by-hand", str(root)) == str(root)
            assert root.exists()
    assert [claim(tmp_path / "by-hand", odd) for odd in (None, 3, "", "a\0b", "/no/such")] == [None] * 5


def test_a_secret_that_is_also_a_word_of_our_own_files_destroys_nothing(tmp_path: Path) -> None:
    words = ("transcript", "duration_ms", "by-hand", "scripted", "schema_version", f"a-1-{A_TRIAL.arm}")
    with write(tmp_path, Redactor({word.upper(): word for word in words})) as writer:
        append(writer, record("a", 1, answer="by-hand", transcript=begin_trial(writer)))
    run = Run.load(tmp_path / "by-hand")
    [found] = run.records()
    assert (found.task_id, found.answer, found.model) == ("a", "[secret BY-HAND]", BASE.model)
    assert (list(run.arms), run.scripted) == ([BASE.id], True)
    assert isinstance(run.transcript(found).events[0], FinalAnswer)


def test_what_a_killed_process_had_begun_is_set_aside_as_evidence(tmp_path: Path) -> None:
    with write(tmp_path) as writer:
        names = [begin_trial(writer) for _ in range(3)]
    assert len(set(names)) == 1
    stem = Path(names[0]).stem
    found = {path.name for path in (tmp_path / "by-hand" / "transcripts").iterdir()}
    assert found == {f"{stem}.jsonl", f"{stem}.lost-1.jsonl", f"{stem}.lost-2.jsonl"}


def test_every_server_and_every_start_of_it_has_a_wire_log_of_its_own(tmp_path: Path) -> None:
    with write(tmp_path) as writer:
        files = writer.open_trial(A_TRIAL)
        servers = ["a b", "a_b", "a/b", "a%20b", "../x", "a b"]
        logs = [files.wire(server) for server in servers]
        for number, log in enumerate(logs):
            log.frame("in", 0, f"{number}".encode())
            log.close()
        files.close()
    wire = tmp_path / "by-hand" / "wire"
    found = {path.name: json.loads(path.read_bytes())["frame"] for path in wire.iterdir()}
    names = ["a%20b", "a_b", "a%2Fb", "a%2520b", "..%2Fx", "a%20b~2"]
    assert found == {f"{A_TRIAL.name}.{name}.jsonl": f"{number}" for number, name in enumerate(names)}


def test_secrets_stand_in_neither_manifest_nor_record_nor_transcript_nor_wire(tmp_path: Path) -> None:
    secret = "sk-Zq81-x7Lw"
    with write(tmp_path, Redactor({"KEY": secret}), note=secret) as writer:
        files = writer.open_trial(A_TRIAL)
        files.write(FinalAnswer(at_ms=0, answer=secret, framing="tagged"))
        wire = files.wire("s")
        wire.frame("in", 0.0, json.dumps({"text": secret}).encode())
        wire.close()
        files.close()
        kept = anyio.run(writer.append, record("a", 1, answer=secret, transcript=files.transcript))
    assert kept.answer == "[secret KEY]"
    texts = {path.name: path.read_text() for path in (tmp_path / "by-hand").rglob("*") if path.is_file()}
    assert sum("[secret KEY]" in text for text in texts.values()) == 4
    assert not [name for name, text in texts.items() if secret in text]


def test_a_record_whose_transcript_cannot_reach_the_disk_is_not_kept(tmp_path: Path) -> None:
    with write(tmp_path) as writer, pytest.raises(IncompleteError, match="cannot write the run: No such file"):
        append(writer, record("a", 1, transcript="transcripts/gone.jsonl"))
    assert Run.load(tmp_path / "by-hand").records() == ()


def test_a_name_that_is_taken_or_no_name_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    write(tmp_path).close()
    with pytest.raises(UsageError, match="a run of that name exists; take another --name"):
        write(tmp_path)
    for name in ("..", "a/b", "", ".hidden", "-x", "x" * 101):
        with pytest.raises(UsageError, match="is no name for a run"):
            write(tmp_path, run_id=name)
    assert [path.name for path in tmp_path.iterdir()] == ["by-hand"]


def test_runs_are_found_by_id_by_path_or_as_the_newest(tmp_path: Path) -> None:
    write(tmp_path, run_id="one").close()
    write(tmp_path, run_id="two").close()
    assert find_run(tmp_path, "one").run_id == "one"
    assert find_run(Path("/nowhere"), str(tmp_path / "one")).run_id == "one"
    assert find_run(tmp_path, None).run_id == "two"
    with pytest.raises(UsageError, match=r"there is no run 'twoo'; did you mean 'two'\?"):
        find_run(tmp_path, "twoo")


def test_every_look_at_held_out_tasks_is_noted_in_order(tmp_path: Path) -> None:
    log_look(tmp_path, "run", "r1")
    log_look(tmp_path, "show", "r1")
    looks = map(json.loads, (tmp_path / "held_out_looks.jsonl").read_text().splitlines())
    assert [(look["command"], look["run_id"]) for look in looks] == [("run", "r1"), ("show", "r1")]
    with pytest.raises(UsageError, match="this look at held-out tasks cannot be noted: No such file"):
        log_look(tmp_path / "gone", "show", "r1")


@pytest.mark.parametrize("named", ["/etc/passwd", "../secret.jsonl", "transcripts/../../secret.jsonl", "link.jsonl"])
def test_a_record_from_elsewhere_cannot_have_files_outside_of_its_run_read(named: str, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text('{"kind":"prompt"}\n')
    made = record("t", 1, transcript=named)
    run = run_of(tmp_path / "run", manifest([task("t")]), [made])
    (run.folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(UsageError, match="outside of its run"):
        run.transcript(made)
