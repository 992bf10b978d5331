"""Regrading: a run's trials graded again by the project's present graders; no model, no server, no agent."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from mcptrials.encoding import dump_line
from mcptrials.errors import UsageError
from mcptrials.events import FinalAnswer
from mcptrials.grading import grade_all
from mcptrials.matrix import first_scored
from mcptrials.plugins import BUILT_IN
from mcptrials.project import Project, make_grader
from mcptrials.protocols import GradeInput, Grader
from mcptrials.record import GradeRecord, Record, Verdicts
from mcptrials.redaction import Redactor
from mcptrials.runner.selection import select_tasks
from mcptrials.runner.watchdog import watched
from mcptrials.store import Run
from mcptrials.store.grades import refuse_grading, write_grades
from mcptrials.store.structure import verdicts_shape
from mcptrials.task import GraderSpec, Task
from mcptrials.transcript import Transcript
from mcptrials.trial import AGENT_STOPS, SERVER_STOPS, Decision, Framing, Grade, Outcome, decide, partial_credit

_ENDED = ("limit:time", *SERVER_STOPS, *AGENT_STOPS)
"""What decides by itself, whatever graders say."""

Progress = Callable[[int, int], None]
"""Hears how many of how many trials are graded."""


@dataclass(frozen=True, slots=True)
class Regraded:
    """A run with its new grades."""

    run: Run
    trials: int
    """How many were graded again."""
    kept: int
    """How many keep their grades: they did not come to an end, or their task is not graded again."""
    flips: Sequence[Mapping[str, Any]]
    grades_kept: int
    """Grades that graders which have not changed gave before and cannot give again."""
    not_graded: Mapping[str, int]
    """Trials whose deciding graders could not tell, by the reason."""
    warnings: Sequence[str]

    @property
    def share_not_graded(self) -> float:
        """Of nothing it is all."""
        return sum(self.not_graded.values()) / self.trials if self.trials else 1.0


@dataclass(frozen=True, slots=True)
class _Judged:
    """A task as it was asked, with the graders that it has now."""

    task: Task
    graders: tuple[tuple[GraderSpec, Grader], ...]

    def never_read(self, index: int, record: Record) -> str | None:
        """Why a grader of ours cannot tell, where the run did not ask for the state that it needs."""
        spec, grader = self.graders[index]
        if spec.type not in BUILT_IN["graders"]:
            return None
        missing = next((query for query in grader.needs(self.task) if query.key not in record.state), None)
        if missing is None:
            return None
        asked = "what its 'read' names" if missing.read else repr(missing.key)
        return f"the run never read {asked}: only a new run does"

    def lasting(self, index: int) -> bool:
        """Whether the hash of a grader tells of all that it depends on: of the user's own objects it does not."""
        spec, grader = self.graders[index]
        return spec.type in BUILT_IN["graders"] or hasattr(grader, "fingerprint")


def regrade(project: Project, run: Run, only: str | None = None, progress: Progress | None = None) -> Regraded:
    """Adds a file of grades to a run; records and older grades stay as they are.

    Raises:
        UsageError: nothing of the run can be graded by this project.
        IncompleteError: the disk is full or gone.
    """
    refuse_grading(run.folder)
    redactor, shape = Redactor(project.secrets), verdicts_shape()
    tasks, warnings = _tasks(project, run, only, redactor)
    before = list(run.attempts())
    chosen = [record for record in before if record.task_id in tasks and record.stop is not None]
    if not chosen:
        what = "the run has no trial that could be graded again"
        raise UsageError(what, where=run.run_id, hint="its trials did not come to an end, or their tasks are gone")
    todo = [(record, tasks[record.task_id]) for record in chosen]
    with tempfile.TemporaryDirectory(prefix="mcptrials-") as name, watched(Path(name)):
        hall = _Hall(project, run, Path(name), progress or (lambda done, total: None))
        judged = anyio.run(_all, hall, todo)
    verdicts = [said for said, _ in judged]
    new = {each.key: each for each in verdicts}
    others = [_verdicts(each) for each in before if each.key not in new] if run.grades else []
    lines = (redactor.line(dump_line(each.model_dump()), shape) for each in [*others, *verdicts])
    after = Run.load(run.folder, write_grades(run.folder, lines))
    undecided = [each for each in verdicts if each.cause == "grader_error"]
    return Regraded(
        run=after,
        trials=len(verdicts),
        kept=len(before) - len(verdicts),
        flips=list(_flips(first_scored(before), first_scored(after.attempts()))),
        grades_kept=sum(grades for _, grades in judged),
        not_graded=Counter(_why_not(each) for each in undecided),
        warnings=warnings,
    )


def _tasks(project: Project, run: Run, only: str | None, redactor: Redactor) -> tuple[dict[str, _Judged], list[str]]:
    """The run's tasks that are graded again, and what is odd about them."""
    suite = select_tasks(project.suite, run.manifest["split"], only) if only else project.suite
    now = {task.id: task for task in suite.tasks}
    found, warnings = {}, []
    for task_id, asked in run.tasks.items():
        if task_id not in now:
            warnings += [] if only else [f"task {task_id} is not in the project any more: it keeps its grades"]
            continue
        task = now[task_id]
        if redactor.text(task.prompt) != asked.prompt:
            warnings.append(f"task {task_id}: its prompt has changed since the run; the old answers are graded")
        changes = {"graders": task.graders, "combine": task.combine, "reference": task.reference}
        found[task_id] = _Judged(
            asked.model_copy(update=changes), tuple((spec, make_grader(spec, project.dir)) for spec in task.graders)
        )
    return found, warnings


@dataclass(frozen=True, slots=True)
class _Hall:
    """Where trials are graded."""

    project: Project
    run: Run
    work_dir: Path
    progress: Progress


async def _all(hall: _Hall, todo: Sequence[tuple[Record, _Judged]]) -> list[tuple[Verdicts, int]]:
    """In the order of the records, with how many grades were kept; several at a time, since some wait for a process."""
    found: dict[int, tuple[Verdicts, int]] = {}
    first = {record.key: record.graders for record in hall.run.recorded()}
    rest = iter(enumerate(todo))

    async def work() -> None:
        for index, (record, judged) in rest:
            given = _given(hall, record, judged.task)
            stored = (*record.graders, *first.get(record.key, ()))
            grades, kept = _with_kept(judged, record, await grade_all(judged.graders, given), stored)
            found[index] = _judged(record, judged.task, grades, given), kept
            hall.progress(len(found), len(todo))

    async with anyio.create_task_group() as workers:
        for _ in range(hall.project.config.concurrency):
            workers.start_soon(work)
    return [found[index] for index in range(len(todo))]


def _with_kept(
    judged: _Judged, record: Record, grades: Sequence[Grade], stored: Sequence[GradeRecord]
) -> tuple[list[Grade], int]:
    """A grade that cannot be made again, by a grader that has not changed, is the one that was given before."""
    found, kept = list(grades), 0
    for index, grade in enumerate(grades):
        if grade.value is not None:
            continue
        alike = (each for each in stored if (each.type, each.hash) == (grade.type, grade.hash))
        before = next((each for each in alike if each.value is not None), None) if judged.lasting(index) else None
        if before is not None:
            told = {"value": before.value, "reason": before.reason or "", "evidence": before.evidence}
            found[index], kept = grade.model_copy(update=told), kept + 1
        elif why := judged.never_read(index, record):
            found[index] = grade.model_copy(update={"reason": why})
    return found, kept


def _given(hall: _Hall, record: Record, task: Task) -> GradeInput:
    transcript = Transcript(hall.run.events(record))
    left = Path(record.trial_dir) if record.trial_dir else None
    outcome = Outcome(
        answer=record.answer,
        framing=record.framing or _framing(transcript),
        state=record.state,
        stop=record.stop or "answer",
    )
    there = left if left and left.is_dir() else None
    return GradeInput(task, outcome, transcript, there, hall.project.dir, hall.work_dir)


def _framing(transcript: Transcript) -> Framing:
    """For records that do not tell."""
    try:
        taken = [event for event in transcript.events if isinstance(event, FinalAnswer)]
    except UsageError:
        return "untagged"
    return taken[-1].framing if taken else "missing"


def _judged(record: Record, task: Task, grades: Sequence[Grade], given: GradeInput) -> Verdicts:
    decision = Decision(record.verdict, record.blame, record.cause)
    if record.stop not in _ENDED:
        late = "call_timeout" in record.server_faults and _last_call_timed_out(given.transcript)
        decision = decide(given.outcome, grades, task.combine, last_call_timed_out=late)
    before = {grade.name or grade.type: grade for grade in record.graders}
    return Verdicts(
        task_id=record.task_id,
        arm=record.arm,
        trial=record.trial,
        attempt=record.attempt,
        passed=decision.passed,
        verdict=decision.verdict,
        cause=decision.cause,
        blame=decision.blame,
        partial=partial_credit(grades),
        graders=tuple(_grade_record(grade, before.get(grade.name)) for grade in grades),
    )


def _grade_record(grade: Grade, before: GradeRecord | None) -> GradeRecord:
    """What cannot be told again keeps what was told before in sight, without counting it."""
    previous = None
    if grade.value is None and before is not None:
        previous = before.previous or {"passed": before.passed, "reason": before.reason, "hash": before.hash}
    return GradeRecord(passed=grade.passed, previous=previous, **grade.model_dump())


def _last_call_timed_out(transcript: Transcript) -> bool:
    answers = [made.answer for made in transcript.calls if made.answer]
    return bool(answers) and answers[-1].status == "timeout"


def _verdicts(record: Record) -> Verdicts:
    """A record's own, for what is not graded again."""
    return Verdicts.model_validate(record.model_dump(include=set(Verdicts.model_fields)))


def _why_not(said: Verdicts) -> str:
    undecided = next(grade for grade in said.graders if grade.gate and grade.value is None)
    return f"{undecided.name or undecided.type}: {undecided.reason}"


def _flips(before: Sequence[Record], after: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """The trials with another verdict than before, and which graders changed their mind."""
    old = {(record.task_id, record.arm, record.trial): record for record in before}
    for now in after:
        then = old.get((now.task_id, now.arm, now.trial))
        if then and (then.verdict, then.cause) != (now.verdict, now.cause):
            yield {
                "task_id": now.task_id,
                "arm": now.arm,
                "trial": now.trial,
                "before": then.verdict,
                "after": now.verdict,
                "cause_before": then.cause,
                "cause_after": now.cause,
                "graders": list(_changes(then.graders, now.graders)),
            }


def _changes(before: Sequence[GradeRecord], after: Sequence[GradeRecord]) -> Iterator[dict[str, Any]]:
    old = {grade.name or grade.type: grade for grade in before}
    for now in after:
        then = old.pop(now.name or now.type, None)
        if then is None or (then.passed, then.reason, then.gate) != (now.passed, now.reason, now.gate):
            yield {
                "grader": now.name or now.type,
                "before": then.passed if then else None,
                "after": now.passed,
                "reason": now.reason,
                "evidence": now.evidence,
            }
    yield from ({"grader": name, "before": gone.passed, "after": None, "reason": "the task has it no more",
                 "evidence": None} for name, gone in old.items())  # fmt: skip
