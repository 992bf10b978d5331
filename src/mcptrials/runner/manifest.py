"""The frozen plan of a run, and what must be equal for it to be continued."""

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mcptrials.encoding import canonical_hash
from mcptrials.errors import UsageError, describe
from mcptrials.project import Project
from mcptrials.record import SCHEMA_VERSION
from mcptrials.runner.options import RunOptions
from mcptrials.runner.preflight import ServerFacts
from mcptrials.task import Suite
from mcptrials.trial import Arm

SHOWN = 5
"""Differences that an error names."""
READABLE = 20
"""Characters of a value that a person can read; longer ones are hashes."""


def versions() -> dict[str, str]:
    """Versions that results may depend on."""
    found = {"python": platform.python_version(), "platform": sys.platform}
    for package in ("mcptrials", "mcp", "openai", "xllamacpp"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def make_manifest(
    project: Project, suite: Suite, arms: Sequence[Arm], environment_hashes: Mapping[str, str], options: RunOptions
) -> dict[str, Any]:
    """What is frozen before the servers are tried: everything that a project says about a run."""
    config = project.config
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": options.name,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "project_file": project.path.name,
        "versions": versions(),
        "split": options.split,
        "seed": config.seed,
        "trials": options.trials or config.trials,
        "trials_asked": options.trials,
        "project_trials": config.trials,
        "concurrency": config.concurrency,
        "limits": config.limits.model_dump(),
        "max_invalid": config.max_invalid,
        "use": config.use,
        "suite_hash": suite.hash,
        "task_hashes": {task.id: task.hash for task in suite.tasks},
        "tasks": [task.model_dump(mode="json") for task in suite.tasks],
        "environment_hashes": dict(environment_hashes),
        "environment": config.environment.model_dump(mode="json", by_alias=True) if config.environment else None,
        "arms": [{"id": arm.id, **arm.model_dump(mode="json")} for arm in arms],
        "variants": config.model_dump(mode="json")["variants"],
        "overrides": {
            name: each.model_dump(mode="json", exclude_unset=True)
            for name, each in project.overrides.items()
            if each.hash
        },
        "servers": {name: server.model_dump(mode="json") for name, server in config.servers.items()},
        "server_hashes": server_hashes(project),
    }


def server_hashes(project: Project) -> dict[str, str]:
    """How the servers are started; not the values of variables and headers, which may be secrets that change."""
    return {
        f"{server} of {variant}": canonical_hash(
            config.model_dump(mode="json", exclude={"env", "headers", "isolation", "preload"})
            | {"env": sorted(config.env), "headers": sorted(config.headers)}
        )
        for variant in project.config.variants
        for server, config in project.config.servers_of(variant).items()
    }


def with_servers(manifest: Mapping[str, Any], facts: Mapping[str, Mapping[str, ServerFacts]]) -> dict[str, Any]:
    """Adds what the servers of each variant said when they were tried."""
    found = {
        variant: {
            name: {
                "name": each.name,
                "version": each.version,
                "protocol_version": each.protocol_version,
                "instructions": each.instructions,
                "tools_hash": each.tools_hash,
                "tools": list(each.tools),
                "dropped": list(each.problems),
                "launch": each.launch,
                "sandbox": each.sandbox,
                "fork": each.fork,
            }
            for name, each in servers.items()
        }
        for variant, servers in facts.items()
    }
    return {**manifest, "preflight": found}


def check_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """A run goes on only as it began; what the servers say is compared once they were tried.

    Raises:
        UsageError: names what differs.
    """
    now = _frozen(new)
    try:
        before = _frozen(old)
    except (LookupError, TypeError, AttributeError) as exc:
        what = f"its manifest is damaged: {describe(exc)}"
        raise UsageError(what, where=f"run {old['run_id']}", hint="restore the file, or start a new run") from exc
    for noun in before:
        if before[noun] != now[noun]:
            what = f"the run began with other {noun}: {_difference(before[noun], now[noun])}"
            raise UsageError(what, where=f"run {old['run_id']}", hint="undo the change, or start a new run")


def _frozen(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a continued run must share with its beginning, by the noun that names it, each as name -> value."""
    own_trials = {f"trials of {task['id']}": task["trials"] for task in manifest["tasks"] if task["trials"]}
    trials = {
        "--trials": manifest["trials_asked"] or "not given",
        "trials in the project file": manifest["project_trials"],
    }
    return {
        "tasks": manifest["task_hashes"],
        "environments": manifest["environment_hashes"],
        "arms": {f"{arm['variant']} · {arm['host']} · {arm['model']} [{arm['id']}]": "" for arm in manifest["arms"]},
        "servers": manifest["server_hashes"],
        "settings": trials | own_trials | {"seed": manifest["seed"], "split": manifest["split"]},
        "limits": manifest["limits"],
    }


def check_same_servers(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """The servers must still be what they were: a run is about one version of them.

    Raises:
        UsageError: names the server and what differs.
    """
    for variant, servers in new["preflight"].items():
        for name, now in servers.items():
            before = _mapping(_mapping(_mapping(old.get("preflight")).get(variant)).get(name))
            changed = [key for key in ("name", "version", "tools_hash", "instructions") if before.get(key) != now[key]]
            if changed:
                what = f"it has changed since the run began: {', '.join(changed).replace('_hash', '')}"
                raise UsageError(what, where=f"server {name!r}", hint="bring the old version back, or start a new run")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The names whose values differ; the values too, where a person can read them."""
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return ", ".join(_change(name, old, new) for name in changed[:SHOWN])


def _change(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    if name not in new:
        return f"{name} is gone"
    if name not in old:
        return f"{name} is new"
    readable = all(len(str(value)) <= READABLE for value in (old[name], new[name]))
    return f"{name} was {old[name]}, is {new[name]}" if readable else f"{name} has changed"
