"""Soundness: which tasks of a run are broken, by what the last check found and by what can be told without a server."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from mcptrials import excerpt
from mcptrials.encoding import canonical_hash, dump_text, parse_json
from mcptrials.errors import UsageError
from mcptrials.grading import grade_all
from mcptrials.project import Project
from mcptrials.protocols import GradeInput
from mcptrials.redaction import Redactor
from mcptrials.rollout import TaskBench
from mcptrials.runner.manifest import server_hashes
from mcptrials.store.disk import write_whole
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome

CACHE = Path(".mcptrials", "check.json")
"""Beside the project file; it may be deleted at any time."""
TOLD = 3
_SHOWN = 160
_ANSWERS = "exact_answer"


def sound_key(task: Task, environment_hash: str, project: Project) -> str:
    """Equal as long as nothing has changed that a verdict on the task depends on."""
    return canonical_hash([task.model_dump(), environment_hash, server_hashes(project)])[:16]


def remember(project: Project, verdicts: Mapping[str, tuple[str, str | None]]) -> None:
    """Keeps verdicts of tasks, each a key and what is wrong; where nothing can be written, nothing is kept."""
    path = project.dir / CACHE
    redactor = Redactor(project.secrets)
    told = {task_id: [key, what and redactor.text(what)] for task_id, (key, what) in verdicts.items()}
    kept = _remembered(project) | told
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, dump_text(kept).encode())


def _remembered(project: Project) -> dict[str, list[str | None]]:
    try:
        found = parse_json((project.dir / CACHE).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def found_broken(project: Project, benches: Iterable[TaskBench]) -> dict[str, str]:
    """What the last check found of tasks that are still the same."""
    before = _remembered(project)
    broken: dict[str, str] = {}
    for bench in benches:
        verdict = before.get(bench.task.id)
        if isinstance(verdict, list) and verdict[:1] == [sound_key(bench.task, bench.environment_hash, project)]:
            broken |= {bench.task.id: str(verdict[-1])} if verdict[-1] else {}
    return broken


async def unfit_answers(benches: Iterable[TaskBench]) -> dict[str, str]:
    """References whose answer their own task does not take."""
    found = {}
    for bench in benches:
        reference = bench.task.reference
        if reference is None or reference.answer is None or bench.task.combine == "any":
            continue
        outcome = Outcome(answer=reference.answer, framing="tagged", stop="answer")
        given = GradeInput(bench.task, outcome, Transcript())
        grades = await grade_all([each for each in bench.graders if each[0].type == _ANSWERS], given)
        refused = next((each for each in grades if each.gate and each.passed is False), None)
        if refused:
            found[bench.task.id] = f"its reference's answer fails grader {refused.name!r}: {refused.reason}"
    return found


def refuse_broken(broken: Mapping[str, str]) -> None:
    """Raises:
    UsageError: a task is broken: what it measures is not the server.
    """
    if broken:
        told = "; ".join(
            f"{task_id}: {excerpt.beginning(what, _SHOWN)}" for task_id, what in list(broken.items())[:TOLD]
        )
        more = f"; and {len(broken) - TOLD} more" if len(broken) > TOLD else ""
        what = f"{'a task is' if len(broken) == 1 else f'{len(broken)} tasks are'} broken: {told}{more}"
        raise UsageError(what, hint="mend what `mcptrials check` says, or run with --set broken_tasks=run")
