"""Grading: one grader's judgement of one trial as a Grade, whatever the grader does."""

import math
from collections.abc import Iterable
from functools import partial
from typing import cast

from mcptrials.encoding import canonical_hash
from mcptrials.environment.own_thread import in_own_thread
from mcptrials.errors import GraderError, McptrialsError, boundary, describe
from mcptrials.plugins import BUILT_IN
from mcptrials.protocols import AsideGrader, GradeInput, Grader, Judgement, Printed
from mcptrials.task import GraderSpec
from mcptrials.trial import Grade

TIMEOUT_S = 30.0
"""Of a grader object of the user's."""


async def grade_all(graders: Iterable[tuple[GraderSpec, Grader]], given: GradeInput) -> list[Grade]:
    """One grade by each grader, in order."""
    return [await grade(spec, grader, given) for spec, grader in graders]


async def grade(spec: GraderSpec, grader: Grader, given: GradeInput) -> Grade:
    """A grader that fails has not graded: None with the reason, never a failed trial."""
    try:
        with boundary(GraderError, "grader_error", f"grader {spec.label!r} failed"):
            judged = _checked(await _judge(spec, grader, given))
    except McptrialsError as exc:
        judged = Judgement(None, describe(exc))
    return Grade(
        type=spec.type,
        name=spec.label,
        value=judged.value,
        gate=grader.default_gate if spec.gate is None else spec.gate,
        weight=spec.weight,
        reason=judged.reason,
        evidence=judged.evidence,
        hash=grader_hash(spec, grader, given),
    )


async def _judge(spec: GraderSpec, grader: Grader, given: GradeInput) -> Judgement:
    """Ours are bounded by themselves; an object of the user's may hang, and no thread can be ended from outside."""
    if hasattr(grader, "grade_aside"):  # isinstance of a protocol costs more than an exact answer
        return await cast("AsideGrader", grader).grade_aside(given)
    if spec.type in BUILT_IN["graders"]:
        return grader.grade(given)
    return await in_own_thread(partial(grader.grade, given), TIMEOUT_S, "it")


def _checked(judged: Judgement) -> Judgement:
    """Raises:
    TypeError, ValueError: it is no judgement.
    """
    if not isinstance(judged, Judgement):
        raise TypeError(f"it gave {type(judged).__name__}, no Judgement")
    value = judged.value
    if value is not None and not isinstance(value, bool | int | float):
        raise TypeError(f"its value is {type(value).__name__}, no bool and no number")
    if value is not None and not math.isfinite(value):
        raise ValueError(f"its value is {value}")
    kept = value if value is None or isinstance(value, bool) else float(value)
    evidence = None if judged.evidence is None else str(judged.evidence)
    return Judgement(kept, str(judged.reason), evidence)


def grader_hash(spec: GraderSpec, grader: Grader, given: GradeInput) -> str:
    """Of what the grade depends on: equal hashes, comparable grades."""
    if given.project_dir is None or not hasattr(grader, "fingerprint"):
        return spec.hash
    try:
        return canonical_hash([spec.hash, cast("Printed", grader).fingerprint(given.project_dir)])[:16]
    except OSError:
        return spec.hash
