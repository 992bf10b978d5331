"""Reading: what can be told of a task by reading it, and what its reference was answered."""

from collections.abc import Iterator, Sequence

from mcptrials.audit.lasting import ages
from mcptrials.audit.leaking import leaks, unfounded
from mcptrials.audit.line import Doubt
from mcptrials.audit.prompting import unnamed
from mcptrials.audit.rehearsing import TaskVerdict
from mcptrials.audit.strictness import over_strict
from mcptrials.audit.trail import told_by
from mcptrials.graders.exact_answer import ExactAnswer
from mcptrials.rollout import TaskBench
from mcptrials.runner.rehearsal import Played


def read_task(verdict: TaskVerdict, bench: TaskBench, played: Played | None, *, is_reset: bool) -> Iterator[Doubt]:
    """What may be wrong with what it asks, and with how its answer is compared."""
    task, spec = verdict.task, bench.environment.spec
    answers = [told_by(made) for made in played.transcript.calls] if played else None
    graders = _deciding(bench)
    for grader in graders:
        yield from unnamed(task.prompt, grader, answers)
    if strict := over_strict(task, graders):
        yield strict
    if aging := ages(task, is_reset=is_reset):
        yield aging
    if verdict.answer_suffices:
        yield from leaks(task, played, spec.files, bench.environment.project_dir)
    if played and (lost := unfounded(played)):
        yield lost


def _deciding(bench: TaskBench) -> Sequence[ExactAnswer]:
    """The graders of answers that decide."""
    return [grader for spec, grader in bench.graders if isinstance(grader, ExactAnswer) and spec.gate is not False]
