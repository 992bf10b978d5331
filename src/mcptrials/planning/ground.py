"""Ground: what is known before an experiment is planned, from a project or from an earlier run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, median
from typing import Any

from mcptrials.counting import counted
from mcptrials.errors import UsageError
from mcptrials.planning.noise import ASSUMED, Noise, measured_noise
from mcptrials.project import Project
from mcptrials.record import Record
from mcptrials.store import Run
from mcptrials.task import Task

MOST_TRANSCRIPTS = 100
"""Of a large run so many trials tell how many requests one takes."""


@dataclass(frozen=True, slots=True)
class Use:
    """What one trial uses; None is not known."""

    requests: float | None = None
    requests_max: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    cost_usd: float | None = None

    def of(self, trials: int) -> dict[str, float | None]:
        """What so many trials use."""
        names = ("requests", "requests_max", "input_tokens", "output_tokens", "cost_usd")
        return {name: None if (each := getattr(self, name)) is None else each * trials for name in names}


@dataclass(frozen=True, slots=True)
class Ground:
    """The tasks at hand, their trials, their noise, and what a trial uses."""

    source: Mapping[str, Any]
    sizes: tuple[int, ...]
    """Tasks of each group; a task without one is a group of its own."""
    trials: int
    """Per task and arm."""
    unequal: bool
    """Whether tasks have other numbers of trials; `trials` is then their median."""
    noise: Noise
    use: Use
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def grouped(self) -> bool:
        return max(self.sizes, default=1) > 1


def ground_of_project(project: Project) -> Ground:
    """The tasks that a plain run would take, with the usual noise.

    Raises:
        UsageError: a plain run has no task.
    """
    tasks = [task for task in project.suite.tasks if task.split == "train" and not task.draft]
    if not tasks:
        what = "a plain run has no task: all are held out, or drafts"
        raise UsageError(what, where=project.path.name, hint="complete a task, or plan for a number: --tasks 20")
    counts = [task.trials or project.config.trials for task in tasks]
    turns = [project.limits(task).turns for task in tasks]
    return Ground(
        source={"kind": "project", "name": project.path.name, "run_dir": None, "split": "train", "scripted": False},
        sizes=group_sizes(tasks),
        trials=round(median(counts)),
        unequal=len(set(counts)) > 1,
        noise=ASSUMED,
        use=Use(requests_max=fmean(turns)),
        seed=project.config.seed,
    )


def ground_of_run(run: Run) -> Ground:
    """The tasks of an earlier run, with the noise and the use that were measured in it.

    Raises:
        UsageError: nothing of it is scored.
    """
    planned = run.tasks
    records = [record for record in run.records() if record.scored and record.task_id in planned]
    if not records:
        hint = "name another run, or none: the project's tasks are then planned for"
        raise UsageError("no trial is scored: nothing can be measured", where=run.run_id, hint=hint)
    tried = {record.task_id for record in records}
    tasks = [task for task in planned.values() if task.id in tried]
    counts = [task.trials or run.manifest["trials"] for task in tasks]
    split = str(run.manifest["split"])
    left = len(planned) - len(tasks)
    return Ground(
        source={
            "kind": "run",
            "name": run.run_id,
            "run_dir": str(run.folder),
            "split": split,
            "scripted": run.scripted,
        },
        sizes=group_sizes(tasks),
        trials=round(median(counts)),
        unequal=len(set(counts)) > 1,
        noise=measured_noise(run.arms, records),
        use=_use(run, records),
        seed=int(run.manifest["seed"]),
        warnings=(f"{counted(left, 'task')} without a scored trial left out",) if left else (),
    )


def group_sizes(tasks: Iterable[Task]) -> tuple[int, ...]:
    """How many tasks each group has; a task without a group is one of its own."""
    sizes: dict[object, int] = {}
    for task in tasks:
        key: object = task.group if task.group else (task.id,)
        sizes[key] = sizes.get(key, 0) + 1
    return tuple(sizes.values())


def _use(run: Run, records: Sequence[Record]) -> Use:
    return Use(
        requests=_requests(run, records),
        input_tokens=_mean([record.input_tokens for record in records]),
        output_tokens=_mean([record.output_tokens for record in records]),
        cost_usd=_mean([record.cost_usd for record in records]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Of what is known of all; an unknown one makes it unknown."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _requests(run: Run, records: Sequence[Record]) -> float | None:
    """Requests to the model per trial, of trials spread over the run."""
    step = -(-len(records) // MOST_TRANSCRIPTS)
    try:
        counts = [
            sum(event.kind == "model_request" for event in run.transcript(record).events)
            for record in islice(records, 0, None, step)
        ]
    except UsageError:
        return None
    return fmean(counts)
