"""`python`: a function of the user's decides: it returns a bool, a number from 0 to 1, or a Grade.

It runs in a process of its own, fresh for each judgement. A thread could not be ended when it hangs, and in our process
it could end the run, print into its output, or remember one trial in the next.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator

from mcptrials.encoding import dump_text, parse_foreign
from mcptrials.errors import GraderError
from mcptrials.frozen import UserData
from mcptrials.graders import aside, python_child
from mcptrials.graders.said import judgement_of
from mcptrials.protocols import GradeInput, Judgement, StateQuery
from mcptrials.task import Task

MAX_TIMEOUT_S = 3600


class PythonFunction(UserData):
    """`function(given)`, sync or async, with `given` a GradeInput."""

    default_gate: ClassVar[bool] = True

    call: str
    timeout_seconds: float = Field(default=aside.TIMEOUT_S, gt=0, le=MAX_TIMEOUT_S)

    @field_validator("call")
    @classmethod
    def _names_a_function(cls, value: str) -> str:
        if not all(value.rpartition(":")):
            raise ValueError("a function is written module:function or ./file.py:function")
        return value

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def fingerprint(self, project_dir: Path) -> str:
        """Of the file that holds the function."""
        path = project_dir / self.call.rpartition(":")[0]
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix == ".py" and path.is_file() else ""

    def grade(self, given: GradeInput) -> Judgement:
        return aside.at_once(self.grade_aside, given)

    async def grade_aside(self, given: GradeInput) -> Judgement:
        async with aside.desk(given) as folder:
            request = {
                "sys_path": [path for path in sys.path if path],
                "call": self.call,
                "trial_dir": given.trial_dir and str(given.trial_dir),
                "project_dir": given.project_dir and str(given.project_dir),
            }
            (folder / "request.json").write_text(dump_text(request), "utf-8")
            argv = (sys.executable, "-I", python_child.__file__, str(folder))
            try:
                done = await aside.run(argv, folder, given, aside.environment(folder, given), self.timeout_seconds)
            except GraderError as exc:
                return Judgement(None, exc.message.replace(repr(sys.executable), repr(self.call)))
            said = _result(folder / "result.json")
        if said is None:
            return Judgement(None, f"{self.call!r} ended without a grade: {aside.last_words(done)}")
        return judgement_of(said["result"], f"what {self.call!r} returned")


def _result(path: Path) -> dict[str, Any] | None:
    """What the child left; None when it ended before."""
    try:
        if path.stat().st_size > aside.MAX_BYTES:
            return None
        value = parse_foreign(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and "result" in value else None
