"""Project: the user's `mcptrials.yaml` with everything it names, read and checked."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcptrials.environment import EnvironmentSpec
from mcptrials.errors import UsageError
from mcptrials.overrides import NOTHING, Overrides
from mcptrials.project.checks import load_overrides, make_config
from mcptrials.project.config import HostConfig, ModelConfig, ProjectConfig, ServerConfig
from mcptrials.project.secrets import Expander, literal_secrets, task_secrets
from mcptrials.project.setting import override
from mcptrials.project.suite import Whereabouts, load_suite, make_grader
from mcptrials.protocols import Limits
from mcptrials.source import Key, Source, load_source
from mcptrials.task import Suite, Task
from mcptrials.trial import Arm

__all__ = ["HostConfig", "ModelConfig", "Project", "ProjectConfig", "ServerConfig", "make_grader", "project_file"]

DEFAULT_FILE = "mcptrials.yaml"


def project_file(path: Path) -> Path:
    """The project file at a path, or in the folder there.

    Raises:
        UsageError: nothing can be there.
    """
    try:
        path = path / DEFAULT_FILE if path.is_dir() else path
        if path.exists():
            return path.resolve()
    except OSError as exc:
        raise UsageError(f"cannot read the file: {exc.strerror}", where=str(path), hint="check the path") from exc
    if path.name == DEFAULT_FILE:
        what = "there is no project file"
        raise UsageError(what, where=str(path), hint="make one with: mcptrials init, or name yours with --project")
    return path


@dataclass(frozen=True)
class Project:
    """A checked project file, its tasks, and the secrets that its settings hold."""

    path: Path
    config: ProjectConfig
    suite: Suite
    secrets: Mapping[str, str]
    """Name -> value, for redaction; never written."""
    overrides: Mapping[str, Overrides] = field(default_factory=dict)
    """What the model is told instead of what the servers say, by variant."""
    source: Source | None = None
    """The file as it was read."""
    places: Whereabouts = field(default_factory=dict)
    """Where each task stands."""

    @classmethod
    def load(
        cls, path: str | Path = DEFAULT_FILE, settings: Iterable[str] = (), environ: Mapping[str, str] | None = None
    ) -> "Project":
        """Reads a project file and its tasks.

        Args:
            settings: `a.b=value` items that replace keys of the file.
            environ: where `${VAR}` is looked up; the process's own by default.

        Raises:
            UsageError: with file, line, key and the nearest valid name.
        """
        source = load_source(project_file(Path(path)))
        if not isinstance(source.value, dict):
            raise UsageError("a project file is a mapping", where=source.where(), hint="begin it with 'version: 1'")
        for setting in settings:
            override(source, setting)
        expander = Expander(source, os.environ if environ is None else environ)
        value = expander.value(source.value)
        try:
            config = make_config(source, value)
            suite, places = load_suite(config, source)
            overrides = {
                name: load_overrides(config, name, source.path.parent, source.where(("variants", name)))
                for name in config.variants
            }
        except UsageError as exc:
            raise expander.scrubbed(exc, value) from exc
        secrets = expander.secrets | literal_secrets(value) | task_secrets(suite.tasks)
        return cls(source.path, config, suite, secrets, overrides, source, places)

    @property
    def dir(self) -> Path:
        return self.path.parent

    @property
    def runs_dir(self) -> Path:
        return self.dir / self.config.runs

    def environment(self, task: Task) -> EnvironmentSpec:
        """The project's environment with what the task adds."""
        return self.config.environment_of(task)

    def limits(self, task: Task) -> Limits:
        return Limits.model_validate(self.config.limits.model_dump() | (task.limits or {}))

    def writes(self, task: Task, server: ServerConfig) -> str:
        """Whether tools that may write are shown (invariant 10: not without a declared environment)."""
        declared = self.config.environment is not None or task.environment is not None
        return server.writes or ("allowed" if declared else "denied")

    def overrides_of(self, variant: str) -> Overrides:
        return self.overrides.get(variant, NOTHING)

    def where(self, *key: Key) -> str:
        """`file:line: key` of a key of the project file, as seen from its folder."""
        return self._near(self.source.where(key) if self.source else self.path.name)

    def where_server(self, variant: str, server: str, *key: Key) -> str:
        """The same of a key of a server, as a variant has it."""
        patches = self.config.variants[variant]
        patch = patches.get(server) if isinstance(patches, dict) else None
        if key and isinstance(patch, dict) and key[0] in patch:
            return self.where("variants", variant, server, *key)
        return self.where("servers", server, *key)

    def where_in(self, task: Task, *key: Key) -> str:
        """The same of a key of a task; what it has of the project's environment stands there."""
        if key[0] == "environment" and not _has(task.environment, key[1:]):
            return self.where(*key)
        place = self.places.get(task.id)
        return self._near(place(key)) if place else f"task {task.id!r}"

    def _near(self, place: str) -> str:
        return place.removeprefix(f"{self.dir}{os.sep}")

    def names(self) -> tuple[tuple[str, str], ...]:
        """What of the project is named in every file of a run: each noun with a name."""
        config = self.config
        return (
            *(("task id", task.id) for task in self.suite.tasks),
            *(("server name", name) for name in config.servers),
            *(("variant name", name) for name in config.variants),
            *(("model", model.model) for model in config.models),
            *(("host", host.host) for host in config.hosts),
            *(("tool", name) for each in self.overrides.values() for name in each.names()),
            *(("reader", name) for name in (config.environment.readers if config.environment else ())),
        )

    def arms(self) -> dict[str, tuple[Arm, ModelConfig, HostConfig]]:
        """Every (variant, host, model), by arm id."""
        arms = {}
        for variant in self.config.variants:
            for host in self.config.hosts:
                for model in self.config.models:
                    endpoint = {"base_url": model.base_url, "schema": model.schema_}
                    endpoint = {key: value for key, value in endpoint.items() if value}
                    arm = Arm(
                        variant=variant,
                        host=host.host,
                        model=model.model,
                        model_settings=endpoint | model.settings,
                        host_settings=host.settings,
                        overrides=self.overrides_of(variant).hash,
                    )
                    arms[arm.id] = (arm, model, host)
        return arms


def _has(environment: Mapping[str, Any] | None, key: tuple[Key, ...]) -> bool:
    """Whether a task's own environment gives a part; of lists it gives all or none."""
    own = (environment or {}).get(str(key[0]))
    return key[1] in own if isinstance(own, Mapping) and len(key) > 1 else own is not None
