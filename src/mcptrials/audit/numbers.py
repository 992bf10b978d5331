"""Numbers: how large a run is, and what it may use at most."""

from mcptrials.audit.line import Line
from mcptrials.counting import counted
from mcptrials.project import Project

_COMPLETE = "complete a task and remove its 'draft: true'"


def number_lines(project: Project) -> list[Line]:
    """Trials of the train split, with their upper bounds; retries come on top."""
    config = project.config
    arms = len(project.arms())
    train = [task for task in project.suite.tasks if task.split == "train"]
    tasks = [task for task in train if not task.draft]
    drafts = len(train) - len(tasks)
    trials = requests = tokens = 0
    for task in tasks:
        limits, own = project.limits(task), (task.trials or config.trials) * arms
        trials += own
        requests += own * limits.turns
        tokens += own * limits.tokens
    facts = {"tasks": len(tasks), "arms": arms, "trials": trials, "requests_max": requests, "tokens_max": tokens}
    size = (
        f"{counted(trials, 'trial')}: {counted(len(tasks), 'task')} by {counted(arms, 'arm')}, each "
        f"{counted(config.trials, 'time')} unless a task says otherwise"
    )
    bound = f"at most {counted(requests, 'model request')} and about {tokens:,} tokens, by the limits"
    if drafts and not tasks:
        return [
            Line("numbers", "warn", "run", f"only drafts, {drafts} of them: a plain run has no task", _COMPLETE, facts)
        ]
    if not tasks:
        fix = "give a task 'split: train', or run with --split held_out"
        return [Line("numbers", "warn", "run", "every task is held out: a plain run has no task", fix, facts)]
    left_out = [Line("numbers", "warn", "drafts", f"{drafts} left out", _COMPLETE)] if drafts else []
    return [
        *left_out,
        Line("numbers", "ok", "run", size, None, facts),
        Line("numbers", "ok", "bounds", bound, None, facts),
    ]
