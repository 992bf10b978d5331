"""`command`: a program of the user's decides: exit code 0 passes, 1 fails, anything else is no grade."""

import hashlib
import re
import sys
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator

from mcptrials import errand, excerpt
from mcptrials.encoding import canonical_hash, parse_foreign
from mcptrials.errors import GraderError
from mcptrials.frozen import Items, UserData
from mcptrials.graders import aside
from mcptrials.graders.said import judgement_of, passes
from mcptrials.protocols import GradeInput, Judgement, StateQuery
from mcptrials.task import Task

PASS, FAIL = 0, 1
_RAISED = re.compile(r"(?!AssertionError\b)[A-Za-z_][\w.]*(?:: |$)")
MAX_TIMEOUT_S = 3600


class Command(UserData):
    """Runs in the project's folder; the trial is in files that its environment names."""

    default_gate: ClassVar[bool] = True

    argv: Items[str] = Field(min_length=1)
    timeout_seconds: float = Field(default=aside.TIMEOUT_S, gt=0, le=MAX_TIMEOUT_S)

    @field_validator("argv")
    @classmethod
    def _can_be_started(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value[0].strip() or any("\0" in word for word in value):
            raise ValueError("it names no program, or holds a NUL character")
        return value

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def fingerprint(self, project_dir: Path) -> str:
        """Of the project's files that it names: a changed script is another grader."""
        places = {word: Path(project_dir, word.replace("{project_dir}", str(project_dir))) for word in self.argv}
        files = {word: path for word, path in places.items() if _is_within(path, project_dir)}
        return canonical_hash({word: hashlib.sha256(path.read_bytes()).hexdigest() for word, path in files.items()})

    def grade(self, given: GradeInput) -> Judgement:
        return aside.at_once(self.grade_aside, given)

    async def grade_aside(self, given: GradeInput) -> Judgement:
        if given.trial_dir is None or not given.trial_dir.is_dir():
            return Judgement(None, "the trial's directory is gone; with keep_trial_dirs: true it is kept")
        async with aside.desk(given) as folder:
            argv = tuple(_filled(word, given) for word in self.argv)
            env = aside.environment(folder, given)
            try:
                done = await aside.run(argv, folder, given, env, self.timeout_seconds)
            except GraderError as exc:
                return Judgement(None, exc.message)
        return _judged(argv[0], done)


def _is_within(path: Path, project_dir: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(project_dir.resolve())
    except (OSError, ValueError):
        return False


def _filled(word: str, given: GradeInput) -> str:
    known = {"trial_dir": given.trial_dir, "project_dir": given.project_dir, "python": sys.executable}
    for name, value in known.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def _judged(program: str, done: errand.Done) -> Judgement:
    """The exit code decides; JSON on stdout says why, and may not say the opposite."""
    if done.code not in (PASS, FAIL):
        return Judgement(None, f"{program!r} exited with code {done.code}: {aside.last_words(done)}")
    text = done.output.decode("utf-8", "replace").strip()
    said = _json(text)
    if said is None:
        words = excerpt.beginning(text, aside.EVIDENCE)
        if done.code == FAIL and _crashed(done):
            return Judgement(None, f"{program!r} crashed: {aside.last_words(done)}")
        reason = "match" if done.code == PASS else "wrong"
        return Judgement(done.code == PASS, reason, f"printed no JSON: {words}" if words else None)
    if "passed" not in said and "value" not in said:
        said = said | {"passed": done.code == PASS}
    judged = judgement_of(said, f"the JSON of {program!r}")
    if judged.value is not None and passes(judged.value) != (done.code == PASS):
        return Judgement(None, f"{program!r} exited with code {done.code}, and its JSON says the opposite")
    return judged


def _crashed(done: errand.Done) -> bool:
    """Python ends with code 1 also by an error of the script; only a failed `assert` is what it wanted to say."""
    last = done.errors.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
    return b"Traceback (most recent call last)" in done.errors and _RAISED.match(last) is not None


def _json(text: str) -> dict[str, Any] | None:
    """The object that was printed, alone or as the last line after others."""
    for part in (text, text.rpartition("\n")[2]):
        try:
            value = parse_foreign(part)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None
