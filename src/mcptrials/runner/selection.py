"""Which tasks and models a run takes."""

import fnmatch
from collections.abc import Sequence

from mcptrials.errors import UsageError
from mcptrials.project import ModelConfig, ProjectConfig
from mcptrials.task import MAX_TRIALS, Split, Suite, Task

MAX_PLANNED = 200_000
"""Trials of one run."""
_FIELDS = ("tag", "group", "purpose", "expects", "id")


def select_tasks(suite: Suite, split: Split, only: str | None) -> Suite:
    """The tasks of a split that an expression picks.

    Args:
        only: comma-separated items, any of which may match: an id or a glob of ids, `tag:NAME`, `group:NAME`,
            `purpose:NAME`, `expects:NAME`; `!item` takes away.

    Raises:
        UsageError: nothing is left, or only drafts.
    """
    tasks = [task for task in suite.tasks if task.split == split]
    if not tasks:
        raise UsageError(
            f"the suite has no {split} task", hint=f"give a task 'split: {split}' or choose another --split"
        )
    chosen = tasks if only is None else pick(tasks, only, f"{split} task")
    ready = tuple(task for task in chosen if not task.draft)
    if not ready:
        ids = ", ".join(task.id for task in chosen[:8])
        raise UsageError(f"only drafts are left, which do not run: {ids}", hint="complete one and remove 'draft: true'")
    return Suite(tasks=ready)


def count_drafts(suite: Suite, split: Split) -> int:
    """How many tasks of a split do not run, since they are drafts."""
    return sum(task.draft and task.split == split for task in suite.tasks)


def pick(tasks: Sequence[Task], only: str, noun: str = "task") -> list[Task]:
    """The tasks that an expression picks.

    Raises:
        UsageError: there is none.
    """
    items = [item.strip() for item in only.split(",") if item.strip()]
    wanted = [item for item in items if not item.startswith("!")]
    unwanted = [item.removeprefix("!") for item in items if item.startswith("!")]
    chosen = [
        task
        for task in tasks
        if (not wanted or any(_matches(task, item) for item in wanted))
        and not any(_matches(task, item) for item in unwanted)
    ]
    if not chosen:
        ids = ", ".join(task.id for task in tasks[:8])
        raise UsageError(f"--only {only!r} picks no {noun}", hint=f"ids begin with: {ids}")
    return chosen


def with_equal_trials(suite: Suite) -> Suite:
    """The suite without its tasks' own numbers of trials: one that is asked for holds for all."""
    return Suite(tasks=tuple(task.model_copy(update={"trials": None}) for task in suite.tasks))


def refuse_too_many(suite: Suite, arms: int, trials: int) -> None:
    """A plan is held in memory, and nobody means one of millions.

    Raises:
        UsageError: more trials than can be meant.
    """
    if trials > MAX_TRIALS:
        raise UsageError(f"{trials:,} trials per task are more than {MAX_TRIALS:,}", hint="lower --trials")
    planned = arms * sum(task.trials or trials for task in suite.tasks)
    if planned > MAX_PLANNED:
        what = f"the plan has {planned:,} trials, more than {MAX_PLANNED:,}"
        raise UsageError(what, hint="lower 'trials', or choose tasks with --only")


def _matches(task: Task, item: str) -> bool:
    field, colon, value = item.partition(":")
    if not colon or field not in _FIELDS:
        return fnmatch.fnmatchcase(task.id, item)
    values = task.tags if field == "tag" else (getattr(task, field),)
    return any(each is not None and fnmatch.fnmatchcase(each, value) for each in values)


def select_models(config: ProjectConfig, models: Sequence[str]) -> ProjectConfig:
    """The project with only these models; those that the file names keep their settings there.

    Raises:
        UsageError: a spec names no adapter.
    """
    if not models:
        return config
    try:
        chosen = tuple(each for spec in dict.fromkeys(models) for each in _named(config, spec))
    except ValueError as exc:
        what = f"--model {', '.join(models)!r} names no adapter"
        raise UsageError(what, hint="write openai:NAME, local:NAME or scripted:FILE") from exc
    return config.model_copy(update={"models": chosen})


def _named(config: ProjectConfig, spec: str) -> Sequence[ModelConfig]:
    """Every entry of the project for a model, which may differ in their settings; else a new one."""
    return [model for model in config.models if model.model == spec] or [ModelConfig(model=spec)]
