"""Answering: which kind each expected answer is compared as, so that a wrong guess is seen before a run."""

from collections import Counter
from collections.abc import Iterator

from mcptrials.audit.line import Line
from mcptrials.graders.exact_answer import ExactAnswer
from mcptrials.project import Project, make_grader

MAX_NAMED = 12
"""Tasks whose guessed kinds are named; all of them stand in the facts."""


def answer_lines(project: Project) -> list[Line]:
    """One line for all expected answers; none without any."""
    found = list(_kinds(project))
    if not found:
        return []
    guessed = [f"{task} {kind}" for task, kind, is_guess in found if is_guess]
    count = Counter(kind for _, kind, _ in found)
    said = f"answers are compared as {', '.join(f'{kind} ({number})' for kind, number in count.most_common())}"
    if guessed:
        more = f" and {len(guessed) - MAX_NAMED} more" if len(guessed) > MAX_NAMED else ""
        said += f"; guessed: {', '.join(guessed[:MAX_NAMED])}{more}"
    kinds = [{"task": task, "kind": kind, "guessed": is_guess} for task, kind, is_guess in found]
    return [Line("files", "ok", "answers", said, None, {"kinds": kinds})]


def _kinds(project: Project) -> Iterator[tuple[str, str, bool]]:
    """Task, kind and whether it is a guess, of each expected answer."""
    for task in project.suite.tasks:
        for spec in task.graders:
            if spec.type == "exact_answer":
                grader = make_grader(spec, project.dir)
                assert isinstance(grader, ExactAnswer)  # noqa: S101 - the built-in of that name
                for kind in dict.fromkeys(grader.kinds):
                    yield task.id, kind, grader.kind is None
