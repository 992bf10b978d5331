"""Origin: what was run, as far as its manifest says."""

from collections.abc import Iterator, Mapping
from typing import Any

from mcptrials.store import Run


def origin_of(run: Run) -> dict[str, Any]:
    """The frozen plan of a run in short; what an older manifest does not say is None."""
    stated = run.manifest
    keys = ("created_at", "split", "trials", "seed", "suite_hash", "use", "max_invalid")
    return {
        "run_id": run.run_id,
        **{key: stated.get(key) for key in keys},
        **{key: _mapping(stated.get(key)) or None for key in ("limits", "versions")},
        "scripted": run.scripted,
        "n_tasks": len(run.tasks),
        "arms": [
            {"arm": arm_id, **arm.model_dump(include={"variant", "host", "model", "model_settings", "host_settings"})}
            for arm_id, arm in run.arms.items()
        ],
        "servers": [*_servers(_mapping(stated.get("preflight")), _mapping(stated.get("servers")))],
    }


def _servers(tried: Mapping[str, Any], configured: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the servers of each variant said of themselves before the run."""
    for variant, servers in tried.items():
        for name, facts in _mapping(servers).items():
            said = _mapping(facts)
            tools = said.get("tools")
            yield {
                "variant": variant,
                "server": name,
                "started_by": _start(_mapping(configured.get(name))),
                **{key: said.get(key) for key in ("name", "version", "protocol_version", "tools_hash")},
                "tools": [str(tool["name"]) for tool in tools if _named(tool)] if isinstance(tools, list) else None,
            }


def _named(tool: Any) -> bool:
    return isinstance(tool, Mapping) and "name" in tool


def _start(server: Mapping[str, Any]) -> str | None:
    """How the project says that a server is reached; of a variant that says otherwise, its base."""
    if server.get("command"):
        args = server.get("args")
        return " ".join(map(str, [server["command"], *(args if isinstance(args, list) else [])]))
    found = server.get("url") or server.get("python")
    return None if found is None else str(found)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
