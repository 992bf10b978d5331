"""Live progress of a try: what it can detect, then the difference as blocks of trials finish."""

from rich.console import Console

from mcptrials.cli.progress import Progress
from mcptrials.counting import counted
from mcptrials.project import Project
from mcptrials.record import Record
from mcptrials.runner.options import Plan
from mcptrials.shares import percent, points, points_interval
from mcptrials.store import Run
from mcptrials.trying import Blocks, detectable, expected_tokens


class TryingProgress(Progress):
    """A `Progress` that also watches the difference."""

    def __init__(self, console: Console, project: Project, *, ask: bool) -> None:
        super().__init__(console, ask=ask)
        self._project = project
        self._blocks: Blocks | None = None
        self._groups: dict[str, str] = {}

    def confirm(self, plan: Plan) -> bool:
        resumed = len(plan.owed) < len(plan.trials)
        earlier = Run.load(self._project.runs_dir / plan.run_id).records() if resumed else ()
        self._blocks = Blocks(plan.trials, plan.owed, earlier)
        self._groups = {task.id: task.group for task in plan.suite.tasks if task.group}
        self.notice(detectable(plan.suite.tasks, plan.trials, self._project.config.seed))
        if told := expected_tokens(self._project, plan.arms, len(plan.owed)):
            self.notice(told)
        return super().confirm(plan)

    def recorded(self, record: Record) -> None:
        super().recorded(record)
        if self._blocks and (done := self._blocks.add(record)):
            self.notice(self._standing(done))

    def _standing(self, done: int) -> str:
        """How it stands: to look at, not to stop by, since a verdict needs the number of looks to be known."""
        assert self._blocks is not None  # noqa: S101 - set before the first trial
        base, changed = self._project.arms()
        found = self._blocks.difference(base, changed, self._groups or None)
        where = f"block {done} of {self._blocks.count}"
        if found is None:
            return f"{where}: no task has a score on both sides"
        difference = f"{points(found.difference)} points {points_interval(found.ci_low, found.ci_high)}".strip()
        rates = f"{percent(found.mean_a)} -> {percent(found.mean_b)}"
        of = f" over {counted(found.n_tasks, 'task')}, {counted(found.n_trials, 'trial')}"
        return f"{where}: {rates}, {difference}{of}; the verdict comes at the end"
