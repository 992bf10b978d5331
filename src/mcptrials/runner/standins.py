"""Stand-ins: agents that do nothing, or guess, and must pass no task; no server and no model is needed to try them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from mcptrials.environment import Environment, TrialPlaces
from mcptrials.errors import HarnessError
from mcptrials.graders.answer import match_answer
from mcptrials.grading import grade_all
from mcptrials.protocols import GradeInput, Place
from mcptrials.rollout import TaskBench
from mcptrials.runner.preflight import no_wire
from mcptrials.task import Suite, Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome, StateValue, decide

COSTLY = frozenset({"judge", "human"})
"""Graders that ask someone."""
SLOW = frozenset({"command", "python"})
"""Graders that run the user's code, for each answer that is tried."""
MAX_FOREIGN = 50
"""Answers of other tasks that are tried on one."""
QUICK_FOREIGN = 5
"""Likewise before each run, of which a suite may have thousands of tasks."""
_DIGIT = re.compile(r"[0-9]")
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?")

_NO_SERVER = StateValue(error="no server runs that could be asked")

RESTRAINED = ("abstain", "refuse")
"""What is expected of tasks that an agent may pass by doing nothing."""

Answer = tuple[str, str | None]
"""What to call it, and the answer itself."""


def can_be_tried(task: Task) -> bool:
    """Whether an agent that does nothing must not pass, and somebody can tell for free."""
    return not task.noop_should_pass and not any(spec.type in COSTLY for spec in task.graders)


def wrong_answers(task: Task, suite: Suite, foreign: int = MAX_FOREIGN) -> list[Answer]:
    """Answers that are none, or senseless, or plausible and wrong."""
    found: list[Answer] = [("no answer", None), ("the answer 'I do not know.'", "I do not know.")]
    if any(spec.type in SLOW for spec in task.graders):
        return found
    found.append(("its prompt as the answer", task.prompt))
    right = task.reference.answer if task.reference else None
    if right is not None and right.strip():
        near = near_miss(right)
        found.append(("a wrong answer" if task.split == "held_out" else f"the wrong answer {near!r}", near))
    return [*found, *_foreign(task, right, suite, foreign)]


def near_miss(right: str) -> str:
    """Another value of the same form."""
    text = right.strip()
    if _NUMBER.fullmatch(text):
        return f"{2 * float(text) + 1:g}" if "." in text else str(2 * int(text) + 1)
    other = _DIGIT.sub(lambda digit: str((int(digit[0]) + 3) % 10), text)
    return other if other != text else f"not {text}"


def _foreign(task: Task, right: str | None, suite: Suite, most: int) -> Iterator[Answer]:
    """What other tasks expect, where that is another answer."""
    seen: set[str] = set()
    for other in suite.tasks:
        answer = other.reference.answer if other.reference else None
        if other.id == task.id or answer is None or answer in seen or len(seen) >= most:
            continue
        seen.add(answer)
        if right is not None and not match_answer(right, answer).passed:
            yield f"the answer of task {other.id}", answer


async def passes(
    bench: TaskBench, answer: str | None, state: Mapping[str, StateValue], transcript: Transcript | None = None
) -> bool:
    """Whether an agent that left this behind passes."""
    framing: Literal["missing", "tagged"] = "missing" if answer is None else "tagged"
    outcome = Outcome(answer=answer, framing=framing, state={**state, **bench.reference_state}, stop="answer")
    given = GradeInput(bench.task, outcome, transcript or Transcript(), None, bench.environment.project_dir)
    grades = await grade_all(bench.graders, given)
    return decide(outcome, grades, bench.task.combine).verdict == "passed"


async def first_that_passes(
    bench: TaskBench, answers: Sequence[Answer], state: Mapping[str, StateValue], transcript: Transcript | None = None
) -> str | None:
    """The name of the first answer that is taken."""
    for name, answer in answers:
        if await passes(bench, answer, state, transcript):
            return name
    return None


async def idle_state(environment: Environment, bench: TaskBench, place: Place) -> dict[str, StateValue]:
    """What a task's readers find when no server was started, as far as they can tell."""
    own = [query for query in bench.queries if query.of == "trial"]
    live = {query.key: _NO_SERVER for query in own if environment.is_read_before_close(query)}
    return live | {query.key: await environment.read(query, place) for query in own if query.key not in live}


async def passing_idly(benches: Sequence[TaskBench], suite: Suite, places: TrialPlaces) -> dict[str, str]:
    """By task, how it passes though nothing is done."""
    worlds: dict[str, list[TaskBench]] = {}
    for bench in benches:
        worlds.setdefault(bench.environment_hash, []).append(bench)
    found: dict[str, str] = {}
    for alike in worlds.values():
        place = places.make(no_wire)
        try:
            await alike[0].environment.prepare(place)
            for bench in alike:
                state = await idle_state(bench.environment, bench, place)
                said = await first_that_passes(bench, wrong_answers(bench.task, suite, QUICK_FOREIGN), state)
                found |= {bench.task.id: f"passes with {said} and without a call"} if said else {}
        except HarnessError:
            continue  # told by the check of the environment
        finally:
            places.remove(place)
    return found
