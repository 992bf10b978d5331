"""Project: the user's `mcptrials.yaml` with everything it names, read and checked."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from mcptrials.environment import EnvironmentSpec
from mcptrials.errors import UsageError
from mcptrials.project.config import HostConfig, ModelConfig, ProjectConfig, ServerConfig
from mcptrials.project.suite import check_queries, load_suite, make_grader
from mcptrials.protocols import Limits
from mcptrials.redaction import looks_secret
from mcptrials.source import Key, Source, explain, load_sources
from mcptrials.task import Suite, Task
from mcptrials.trial import Arm

__all__ = ["HostConfig", "ModelConfig", "Project", "ProjectConfig", "ServerConfig", "make_grader"]

DEFAULT_FILE = "mcptrials.yaml"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Project:
    """A checked project file, its tasks, and the secrets that its settings hold."""

    path: Path
    config: ProjectConfig
    suite: Suite
    secrets: Mapping[str, str]
    """Name -> value, for redaction; never written."""

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
        path = Path(path)
        if path.is_dir():
            path /= DEFAULT_FILE
        source = load_sources(path.resolve() if path.exists() else path)[0]
        if not isinstance(source.value, dict):
            raise UsageError("a project file is a mapping", where=source.where(), hint="begin it with 'version: 1'")
        for setting in settings:
            _apply(source, setting)
        expanded = _Expander(source, os.environ if environ is None else environ)
        value = expanded.value(source.value, ())
        try:
            config = ProjectConfig.model_validate(value)
            for variant in config.variants:
                config.servers_of(variant)
        except ValidationError as exc:
            raise explain(source, exc) from exc
        suite = load_suite(config.tasks, source.path.parent)
        project = cls(source.path, config, suite, expanded.secrets | _literal_secrets(config))
        for task in suite.tasks:
            check_queries(task, project.environment(task), project.dir)
        return project

    @property
    def dir(self) -> Path:
        return self.path.parent

    @property
    def runs_dir(self) -> Path:
        return self.dir / self.config.runs

    def environment(self, task: Task) -> EnvironmentSpec:
        """The project's environment with what the task adds."""
        return (self.config.environment or EnvironmentSpec()).merged(task.environment)

    def limits(self, task: Task) -> Limits:
        return Limits.model_validate(self.config.limits.model_dump() | (task.limits or {}))

    def writes(self, task: Task, server: ServerConfig) -> str:
        """Whether tools that may write are shown (invariant 10: not without a declared environment)."""
        declared = self.config.environment is not None or task.environment is not None
        return server.writes or ("allowed" if declared else "denied")

    def arms(self) -> dict[str, tuple[Arm, ModelConfig, HostConfig]]:
        """Every (variant, host, model), by arm id."""
        arms = {}
        for variant in self.config.variants:
            for host in self.config.hosts:
                for model in self.config.models:
                    endpoint = {"base_url": model.base_url} if model.base_url else {}
                    arm = Arm(
                        variant=variant,
                        host=host.host,
                        model=model.model,
                        model_settings=endpoint | model.settings,
                        host_settings=host.settings,
                    )
                    arms[arm.id] = (arm, model, host)
        return arms


def _apply(source: Source, setting: str) -> None:
    """One `a.b=value` of the command line, as if the file said so."""
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise UsageError(f"--set {setting!r} has no '='", hint="write --set trials=3 or --set limits.turns=8")
    *parents, last = name.split(".")
    target = source.value
    for part in parents:
        target = target[int(part)] if isinstance(target, list) and part.isdigit() else target.setdefault(part, {})
        if not isinstance(target, dict | list):
            raise UsageError(f"--set {name}: {part!r} is no mapping", hint="check the path of the key")
    value = _scalar(text)
    if isinstance(target, list):
        if not last.isdigit() or int(last) >= len(target):
            raise UsageError(f"--set {name}: the list has no item {last!r}", hint="count from 0")
        target[int(last)] = value
    else:
        target[last] = value


def _scalar(text: str) -> Any:
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as exc:
        raise UsageError(f"--set value {text!r} is not valid YAML", hint="quote it") from exc


class _Expander:
    """Fills in `${VAR}` and notes which values are secrets."""

    def __init__(self, source: Source, environ: Mapping[str, str]) -> None:
        self._source, self._environ = source, environ
        self.secrets: dict[str, str] = {}

    def value(self, value: Any, key: tuple[Key, ...]) -> Any:
        if isinstance(value, dict):
            return {name: self.value(item, (*key, name)) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, (*key, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            return _VARIABLE.sub(lambda match: self._lookup(match.group(1), key), value)
        return value

    def _lookup(self, name: str, key: tuple[Key, ...]) -> str:
        value = self._environ.get(name)
        if value is None:
            what = f"the environment variable {name!r} is not set"
            raise UsageError(what, where=self._source.where(key), hint=f"export {name}=... and run again")
        if looks_secret(name, value, from_environment=True):
            self.secrets[name] = value
        return value


def _literal_secrets(config: ProjectConfig) -> dict[str, str]:
    """Secrets that stand in the file itself: variables of servers, API keys, headers."""
    found: dict[str, str] = {}
    for name, server in config.servers.items():
        found |= {f"servers.{name}.env.{key}": value for key, value in server.env.items() if looks_secret(key, value)}
    for index, model in enumerate(config.models):
        found |= {f"models.{index}.headers.{key}": value for key, value in model.headers.items()}
        if model.api_key:
            found[f"models.{index}.api_key"] = model.api_key
    return {name: value for name, value in found.items() if "{trial_dir}" not in value}
