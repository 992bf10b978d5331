"""The frozen plan of a run, and what must be equal for it to be continued."""

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mcptrials.encoding import canonical_hash
from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.record import SCHEMA_VERSION
from mcptrials.runner.options import RunOptions
from mcptrials.runner.preflight import ServerFacts
from mcptrials.task import Suite
from mcptrials.trial import Arm

_FROZEN = ("suite_hash", "environment_hashes", "arms", "trials", "seed", "split", "servers_hash", "limits")
"""What a continued run must share with its beginning, in the order in which a difference is named."""


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
        "trials": config.trials,
        "concurrency": config.concurrency,
        "limits": config.limits.model_dump(),
        "max_invalid": config.max_invalid,
        "use": config.use,
        "suite_hash": suite.hash,
        "tasks": [task.model_dump(mode="json") for task in suite.tasks],
        "environment_hashes": dict(environment_hashes),
        "environment": config.environment.model_dump(mode="json", by_alias=True) if config.environment else None,
        "arms": [arm.model_dump(mode="json") for arm in arms],
        "variants": config.model_dump(mode="json")["variants"],
        "servers": {name: server.model_dump(mode="json") for name, server in config.servers.items()},
        "servers_hash": _servers_hash(project),
    }


def _servers_hash(project: Project) -> str:
    """How the servers are started; not the values of their variables, which may be secrets that change."""
    servers = {
        variant: {
            name: server.model_dump(mode="json", exclude={"env"}) | {"env": sorted(server.env)}
            for name, server in project.config.servers_of(variant).items()
        }
        for variant in project.config.variants
    }
    return canonical_hash(servers)


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
            }
            for name, each in servers.items()
        }
        for variant, servers in facts.items()
    }
    return {**manifest, "preflight": found}


def check_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """A run goes on only as it began.

    Raises:
        UsageError: names what differs.
    """
    for key in _FROZEN:
        if old.get(key) != new.get(key):
            what = f"the run began with another {key.replace('_', ' ')}: {_difference(old.get(key), new.get(key))}"
            raise UsageError(what, hint="undo the change, or start a new run")


def _difference(old: Any, new: Any) -> str:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        return f"{', '.join(changed[:5])} changed"
    return f"{str(old)[:60]} then, {str(new)[:60]} now"
