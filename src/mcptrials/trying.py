"""One change against what is there: the project with two arms, and the difference as blocks of trials finish."""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mcptrials.counting import counted
from mcptrials.errors import UsageError
from mcptrials.planning.ground import group_sizes
from mcptrials.planning.noise import ASSUMED
from mcptrials.project import Project, ProjectConfig
from mcptrials.project.checks import load_overrides
from mcptrials.record import Record
from mcptrials.source import nearest
from mcptrials.stats import PairedComparison, compare_paired
from mcptrials.stats.chance import Chances, Experiment
from mcptrials.stats.paired import FEWEST_UNITS
from mcptrials.store import find_run
from mcptrials.task import Task
from mcptrials.trial import Arm, Trial

CHANGED = "changed"
OVERRIDES = "overrides.yaml"
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Change:
    """What is tried; None of both is the file `overrides.yaml` beside the project's."""

    overrides: str | None = None
    server: str | None = None
    """A command, or `NAME=COMMAND` where the project has several servers."""
    base: str | None = None
    """The variant that is changed; None is the project's first."""


def two_armed(project: Project, change: Change) -> Project:
    """The project with two variants: what is there, and the same with the change.

    Raises:
        UsageError: there is nothing to try, or more than two arms would be run.
    """
    base = _base(project, change.base)
    changed = CHANGED if base != CHANGED else f"{CHANGED}-again"
    patches = project.config.variants[base]
    if isinstance(patches, str):
        raise UsageError(f"variant {base!r} has no server to change", hint="choose another with --base")
    new = dict(patches)
    if (file := _overrides(project, change)) is not None:
        new["overrides"] = file
    if change.server is not None:
        new |= _server(project.config, base, change.server)
    config = project.config.model_copy(update={"variants": {base: patches, changed: new}})
    told = {name: load_overrides(config, name, project.dir, f"{project.path}: {name}") for name in config.variants}
    if told[base].hash == told[changed].hash and config.servers_of(base) == config.servers_of(changed):
        what = f"nothing differs from variant {base!r}"
        raise UsageError(what, where=file or project.path.name, hint="edit the overrides, or give another --server")
    return replace(project, config=config, overrides=told)


def refuse_more_arms(config: ProjectConfig) -> None:
    """One model and one host: each further one would be another question.

    Raises:
        UsageError: names the models.
    """
    if len(config.models) > 1:
        names = ", ".join(each.model for each in config.models)
        raise UsageError(f"the project has {len(config.models)} models", hint=f"choose one with --model: {names}")
    if len(config.hosts) > 1:
        names = ", ".join(each.host for each in config.hosts)
        raise UsageError(f"the project has {len(config.hosts)} hosts: {names}", hint="choose one: --set 'hosts=[loop]'")


def _base(project: Project, name: str | None) -> str:
    variants = project.config.variants
    if name is None:
        return next(iter(variants))
    if name not in variants:
        raise UsageError(f"the project has no variant {name!r}", where=project.path.name, hint=nearest(name, variants))
    return name


def _overrides(project: Project, change: Change) -> str | None:
    """The file of overrides, relative to the project's folder."""
    if change.overrides is not None:
        return os.path.relpath(Path(change.overrides).absolute(), project.dir.absolute())
    if change.server is not None:
        return None
    if not (project.dir / OVERRIDES).exists():
        what = f"there is nothing to try: no {OVERRIDES} stands beside {project.path.name}"
        hint = "write one (see docs/files.md), or give the changed server's command: --server 'COMMAND'"
        raise UsageError(what, where=str(project.dir), hint=hint)
    return OVERRIDES


def _server(config: ProjectConfig, base: str, text: str) -> dict[str, Any]:
    """The patch that starts one server by another command."""
    name, equals, command = text.partition("=")
    if not (equals and name in config.servers):
        name, command = next(iter(config.servers)), text
        if len(config.servers) > 1:
            known = ", ".join(config.servers)
            raise UsageError(f"--server {text!r} names none of the servers", hint=f"write NAME=COMMAND; known: {known}")
    try:
        argv = shlex.split(command)
    except ValueError as exc:
        raise UsageError(f"--server {text!r}: {exc}", hint="write it as in a shell") from exc
    if not argv:
        raise UsageError(f"--server {text!r} is no command", hint="write it as in a shell")
    own = config.variants[base]
    before = own.get(name, {}) if isinstance(own, dict) else {}
    patch = {"command": argv[0], "args": argv[1:]}
    try:
        # What a variant says of a server by URL does not go with a command.
        config.patched(name, merged := {**(before if isinstance(before, dict) else {}), **patch})
    except ValidationError:
        return {name: patch}
    return {name: merged}


class Blocks:
    """Counts a plan's blocks down; each block that is done moves the difference."""

    def __init__(self, trials: Sequence[Trial], owed: Iterable[Trial], earlier: Iterable[Record]) -> None:
        self._open = Counter(trial.block for trial in owed)
        self.count = max((trial.block for trial in trials), default=0)
        self._records = [record for record in earlier if record.scored]

    def add(self, record: Record) -> int | None:
        """The number of the block that is done with this record, when it was the last of it and of all before."""
        self._open[record.block] -= 1
        if record.scored:
            self._records.append(record)
        done = not any(left for block, left in self._open.items() if block <= record.block)
        return record.block if done else None

    def difference(self, base: str, changed: str, groups: dict[str, str] | None) -> PairedComparison | None:
        """Of all that was scored until now."""
        scores: dict[str, dict[str, list[float]]] = {base: {}, changed: {}}
        for record in self._records:
            if record.arm in scores and record.passed is not None:
                scores[record.arm].setdefault(record.task_id, []).append(float(record.passed))
        if not scores[base].keys() & scores[changed].keys():
            return None
        return compare_paired(scores[base], scores[changed], groups)


def detectable(tasks: Sequence[Task], trials: Sequence[Trial], seed: int) -> str:
    """What a plan of two arms can detect, said before it costs anything: as `mcptrials power` says it."""
    per_task = max(1, round(len(trials) / len(tasks) / 2))
    plan = Experiment(group_sizes(tasks), ASSUMED.design(per_task))
    units, grouped = len(plan.sizes), len(plan.sizes) < len(tasks)
    what = counted(units, "group of tasks", "groups of tasks") if grouped else counted(units, "task")
    if not plan.can_decide:
        return f"{what} can never decide: the test needs {FEWEST_UNITS} that differ; look at the transcripts"
    found = Chances(seed).detectable(plan, POWER)
    if found is None:
        return f"{what} x {counted(per_task, 'trial')} detect no difference at 80 % power (usual noise assumed)"
    return f"{what} x {counted(per_task, 'trial')} detect {100 * found:.0f} points at 80 % power (usual noise assumed)"


def expected_tokens(project: Project, arms: Iterable[Arm], n_trials: int) -> str | None:
    """What the newest run of the same model used, for so many trials; None when there is none."""
    try:
        run = find_run(project.runs_dir, None)
        records = run.records()
    except UsageError:
        return None
    models = {arm.model for arm in arms}
    used = [(each.input_tokens, each.output_tokens) for each in records if each.model in models and each.scored]
    known = [(i, o) for i, o in used if i is not None and o is not None]
    if not known or len(known) < len(used):
        return None
    each_in, each_out = (n_trials * sum(part) / len(known) for part in zip(*known, strict=True))
    return f"about {each_in:,.0f} tokens in and {each_out:,.0f} out, if trials use what those of run {run.run_id} did"
