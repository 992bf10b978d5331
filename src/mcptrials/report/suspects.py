"""Suspects: what looks like a fault of a task, a grader or the run itself, to be read before the numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcptrials import excerpt
from mcptrials.counting import counted
from mcptrials.record import GradeRecord, Record
from mcptrials.report.copies import copied_beyond_chance
from mcptrials.task import Task

SUSPECT_TRIALS = 5
"""A task that no one of so many scored trials passes, over all arms: most often the task or its grader is broken."""
STATE_GRADERS = ("state_check", "state_equals_reference", "only_changes")
FORM_REASONS = ("near_miss", "format", "hedged", "no_answer")
"""Why an answer is rejected that may be right as such."""
_SHOWN_ANSWER = 60
_NAMED = 5

Suspect = dict[str, Any]


def suspects(labels: Mapping[str, str], tasks: Mapping[str, Task], records: Sequence[Record]) -> list[Suspect]:
    """One entry per thing to look at, the gravest kinds first."""
    by_task = {task_id: [r for r in records if r.task_id == task_id and r.scored] for task_id in tasks}
    found: list[Suspect] = []
    for kind in (_never_passed, _agreed, _right_state, _near_misses, _untouched, _unstable):
        found += [each for task_id, mine in by_task.items() for each in kind(tasks[task_id], mine)]
    for arm, label in labels.items():
        found += _copied(arm, label, [record for record in records if record.arm == arm])
    return [*found, *_flips(by_task)]


def _suspect(kind: str, reason: str, records: Iterable[Record], of: int, **keys: Any) -> Suspect:
    trials = [Path(each.transcript).stem for each in records]
    return {"kind": kind, "task_id": None, "arm": None, **keys, "trials": len(trials), "of": of, "reason": reason,
            "examples": trials[:3]}  # fmt: skip


def _never_passed(task: Task, records: Sequence[Record]) -> Iterator[Suspect]:
    if len(records) >= SUSPECT_TRIALS and not any(record.passed for record in records):
        reason = "no trial passed: check the task and its graders"
        yield _suspect("never_passed", reason, records, len(records), task_id=task.id)


def _agreed(task: Task, records: Sequence[Record]) -> Iterator[Suspect]:
    """Two arms that come to the same rejected answer by themselves are seldom both wrong."""
    rejected: dict[str, list[Record]] = {}
    for record in records:
        if record.answer and not record.passed and _failing(record, _is_answer):
            rejected.setdefault(" ".join(record.answer.split()).casefold(), []).append(record)
    for same in rejected.values():
        arms = {record.arm for record in same}
        if len(arms) > 1:
            answer = excerpt.beginning(same[0].answer or "", _SHOWN_ANSWER)
            models = {record.model for record in same}
            who = f"{len(models)} models" if len(models) > 1 else f"{len(arms)} arms"
            reason = f"{who} agree on the rejected answer {answer!r}: is it right?"
            yield _suspect("agreed_answer", reason, same, len(records), task_id=task.id)


def _near_misses(task: Task, records: Sequence[Record]) -> Iterator[Suspect]:
    failed = [record for record in records if not record.passed]
    near = [record for record in failed if any(grade.reason == "near_miss" for grade in _failing(record))]
    if near:
        reason = f"{len(near)} of {counted(len(failed), 'failure')} by a near miss: check the grader"
        yield _suspect("near_miss", reason, near, len(failed), task_id=task.id)


def _right_state(task: Task, records: Sequence[Record]) -> Iterator[Suspect]:
    """The task was done, and the answer alone was found wrong."""
    found = []
    for record in records:
        state = [grade for grade in record.graders if grade.gate and grade.type in STATE_GRADERS]
        failing = _failing(record)
        form = failing and all(_is_answer(grade) and grade.reason in FORM_REASONS for grade in failing)
        if state and form and all(grade.passed for grade in state):
            found.append(record)
    if found:
        reason = f"{counted(len(found), 'trial')} left the right state and failed by the form of the answer"
        yield _suspect("right_state", reason, found, len(records), task_id=task.id)


def _untouched(task: Task, records: Sequence[Record]) -> Iterator[Suspect]:
    passed = [record for record in records if record.passed]
    untouched = [record for record in passed if record.tool_calls == 0]
    if task.expects == "act" and untouched:
        reason = (
            f"{counted(len(untouched), 'trial')} passed without a call to the server: the task leaks or can be guessed"
        )
        yield _suspect("untouched", reason, untouched, len(passed), task_id=task.id)


def _unstable(task: Task, records: Sequence[Record]) -> Iterator[Suspect]:
    """Equal replies met equal worlds: what differs is the grader's doing, or the reset's."""
    verdicts: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.reply_hash:
            verdicts.setdefault((record.arm, record.reply_hash), []).append(record)
    for same in verdicts.values():
        if len({record.passed for record in same}) > 1:
            reason = f"{len(same)} trials with equal replies both pass and fail: the state or a grader is not stable"
            yield _suspect("unstable_verdict", reason, same, len(records), task_id=task.id, arm=same[0].arm)


def _copied(arm: str, label: str, records: Sequence[Record]) -> Iterator[Suspect]:
    scored = [record for record in records if record.scored and record.reply_hash]
    repeats = Counter((record.task_id, record.reply_hash) for record in scored)
    count = len(scored) - len(repeats)
    repeatable = len(scored) - len({record.task_id for record in scored})
    if copied_beyond_chance(count, repeatable):
        reason = (
            f"{label}: {count} of {repeatable} repeated trials are word for word copies (temperature 0, a cache, a"
            " script): they tell no more than one trial, so tasks are the unit"
        )
        copies = [record for record in scored if repeats[record.task_id, record.reply_hash] > 1]
        yield _suspect("copied_trials", reason, copies, repeatable, arm=arm) | {"trials": count}


def _flips(by_task: Mapping[str, Sequence[Record]]) -> Iterator[Suspect]:
    """Tasks that the same arm both passes and fails, the most even first."""
    mixed: list[tuple[float, str, list[Record]]] = []
    for task_id, records in by_task.items():
        for arm in dict.fromkeys(record.arm for record in records):
            mine = [record for record in records if record.arm == arm]
            rate = sum(bool(record.passed) for record in mine) / len(mine)
            if 0 < rate < 1:
                mixed.append((abs(rate - 0.5), task_id, mine))
    mixed.sort(key=lambda each: each[0])
    if mixed:
        names = list(dict.fromkeys(task_id for _, task_id, _ in mixed))
        shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        reason = f"{len(names)} of {counted(len(by_task), 'task')} passed and failed by the same arm: {shown}"
        yield _suspect("flips", reason, [r for _, _, mine in mixed for r in mine if not r.passed],
                       sum(len(mine) for _, _, mine in mixed), tasks=names)  # fmt: skip


def _is_answer(grade: GradeRecord) -> bool:
    return grade.type == "exact_answer"


def _failing(record: Record, of: Any = None) -> list[GradeRecord]:
    """The deciding graders that failed a trial."""
    return [grade for grade in record.graders if grade.gate and grade.passed is False and (of is None or of(grade))]
