"""Idling: whether a task passes though nothing is done, which measures nobody; no server and no model is needed."""

from collections.abc import Mapping, Sequence
from typing import Literal

from mcptrials.audit.line import Line
from mcptrials.environment import Environment
from mcptrials.errors import GraderError, HarnessError, boundary
from mcptrials.project import Project, make_grader
from mcptrials.protocols import GradeInput, Grader, Place
from mcptrials.runner.building import Workshop
from mcptrials.runner.preflight import no_wire
from mcptrials.task import GraderSpec, Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Grade, Outcome, StateValue, decide

COSTLY = frozenset({"judge", "human"})
"""Graders that ask someone."""
_ANSWERS = {"no answer": None, "the answer 'I do not know.'": "I do not know."}
_RESTRAINED = ("abstain", "refuse")

Graders = Sequence[tuple[GraderSpec, Grader]]


async def idling_lines(project: Project, workshop: Workshop) -> list[Line]:
    """One line per task that a model passes by answering nothing, or nonsense, and calling no tool."""
    lines, worlds = [], dict[str, list[Task]]()
    for task in project.suite.tasks:
        worlds.setdefault(workshop.environment(task).fingerprint(), []).append(task)
    for tasks in worlds.values():
        environment = workshop.environment(tasks[0])
        place = workshop.places.make(no_wire)
        try:
            await environment.prepare(place)
            lines += [line for task in tasks for line in await _lines(task, project, environment, place)]
        except HarnessError:
            continue  # told by the check of the environment
        finally:
            workshop.places.remove(place)
    return lines or [Line("tasks", "ok", "tasks", "none passes when nothing is done")]


async def _lines(task: Task, project: Project, environment: Environment, place: Place) -> list[Line]:
    if task.noop_should_pass or any(spec.type in COSTLY for spec in task.graders):
        return []
    graders = [(spec, make_grader(spec, project.dir)) for spec in task.graders]
    queries = {query.text: query for _, grader in graders for query in grader.needs(task)}
    state = {text: await environment.read(query, place) for text, query in queries.items()}
    passed = [said for said, answer in _ANSWERS.items() if _passes(task, graders, answer, state)]
    if not passed:
        return []
    what = f"passes with {passed[0]} and without a call"
    fix = "ask for more, or say noop_should_pass: true if that is right"
    return [Line("tasks", "warn" if task.expects in _RESTRAINED else "fail", task.id, what, fix)]


def _passes(task: Task, graders: Graders, answer: str | None, state: Mapping[str, StateValue]) -> bool:
    framing: Literal["missing", "tagged"] = "missing" if answer is None else "tagged"
    outcome = Outcome(answer=answer, framing=framing, state=dict(state), stop="answer")
    given = GradeInput(task, outcome, Transcript())
    return decide(outcome, [_grade(*each, given) for each in graders], task.combine).verdict == "passed"


def _grade(spec: GraderSpec, grader: Grader, given: GradeInput) -> Grade:
    gate = grader.default_gate if spec.gate is None else spec.gate
    value: bool | float | None = None
    reason = "cannot be told"
    try:
        with boundary(GraderError, "grader_error", "failed"):
            judgement = grader.grade(given)
            value, reason = judgement.value, judgement.reason
    except GraderError:
        pass  # without a decision there is no pass
    return Grade(type=spec.type, name=spec.label, value=value, gate=gate, reason=reason, hash=spec.hash)
