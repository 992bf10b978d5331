"""Aside: how graders run programs of others: in a folder of their own, with what they may see of a trial as files."""

import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import to_thread

from mcptrials import errand, excerpt
from mcptrials.encoding import dump_line, dump_text
from mcptrials.errors import GraderError
from mcptrials.protocols import GradeInput, Judgement
from mcptrials.removal import remove_tree

TIMEOUT_S = 30.0
MAX_BYTES = 1 << 20
REASON, EVIDENCE = 300, 2000
"""Characters that are kept of what a grader says."""
_INHERITED = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "SYSTEMROOT", "HOME", "USERPROFILE"),
    *("PYENV_ROOT", "VIRTUAL_ENV"),
)


@asynccontextmanager
async def desk(given: GradeInput) -> AsyncIterator[Path]:
    """A folder with the trial's answer, transcript, state and task, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="grade-", dir=given.work_dir))
    try:
        await to_thread.run_sync(_lay_out, folder, given)
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, folder)


def _lay_out(folder: Path, given: GradeInput) -> None:
    with (folder / "transcript.jsonl").open("wb") as file:
        file.writelines(dump_line(event.model_dump()) for event in given.transcript.events)
    if given.outcome.answer is not None:
        (folder / "answer.txt").write_bytes(given.outcome.answer.encode("utf-8", "surrogatepass"))
    for name, value in (("task", given.task), ("outcome", given.outcome)):
        (folder / f"{name}.json").write_text(dump_text(value.model_dump()), "utf-8")


def environment(folder: Path, given: GradeInput) -> dict[str, str]:
    """Nothing of ours but what a process needs: no key of a provider, and no variable that changes what runs."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    places = {
        "TRIAL_DIR": given.trial_dir,
        "ANSWER_FILE": folder / "answer.txt" if given.outcome.answer is not None else None,
        "TRANSCRIPT_FILE": folder / "transcript.jsonl",
        "OUTCOME_FILE": folder / "outcome.json",
        "TASK_FILE": folder / "task.json",
    }
    told = {f"MCPTRIALS_{name}": str(path) for name, path in places.items() if path is not None}
    return inherited | told | {"PYTHONUTF8": "1", "TMPDIR": str(folder), "MCPTRIALS_TASK_ID": given.task.id}


async def run(
    argv: tuple[str, ...], folder: Path, given: GradeInput, env: Mapping[str, str], timeout_s: float
) -> errand.Done:
    """A program, to its end.

    Raises:
        GraderError: it cannot be started, takes too long, prints too much, or is ended by a signal.
    """
    project_dir = given.project_dir or folder
    try:
        done = await errand.run(errand.Errand(argv, project_dir, env, timeout_s, MAX_BYTES, folder))
    except TimeoutError:
        raise _failed(f"{argv[0]!r} did not end within {timeout_s:g} s") from None
    except (OSError, ValueError) as exc:
        raise _failed(f"cannot start {argv[0]!r}: {getattr(exc, 'strerror', None) or exc}") from exc
    if done.too_much:
        raise _failed(f"{argv[0]!r} printed more than {MAX_BYTES >> 20} MiB")
    if done.code < 0:
        raise _failed(f"{argv[0]!r} was ended by signal {-done.code}")
    return done


def _failed(what: str) -> GraderError:
    return GraderError("grader_error", what)


def last_words(done: errand.Done) -> str:
    """Why a program failed, as far as it says."""
    text = errand.tail_text(done.errors)
    return excerpt.telling(text, REASON) if text.strip() else "it printed nothing on stderr"


def at_once(grade: Callable[[GradeInput], Awaitable[Judgement]], given: GradeInput) -> Judgement:
    """For callers that cannot wait: an event loop of its own in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, grade, given).result()
