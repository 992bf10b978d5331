"""Names to objects: built-ins are a table of strings, the rest are import paths, files and entry points.

Nothing is imported before it is asked for.
"""

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from mcptrials.errors import HarnessError, UsageError, boundary
from mcptrials.source import nearest

Kind = Literal["models", "hosts", "servers", "graders", "readers"]

BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "models": {
        "anthropic": "mcptrials.models.anthropic_messages:AnthropicMessages",
        "local": "mcptrials.models.local:LocalModel",
        "openai": "mcptrials.models.openai_chat:OpenAIChat",
        "openai-responses": "mcptrials.models.openai_responses:OpenAIResponses",
        "scripted": "mcptrials.models.scripted:Scripted",
    },
    "hosts": {"loop": "mcptrials.hosts.loop:Loop", "replay": "mcptrials.hosts.replay:Replay"},
    "servers": {
        "fork": "mcptrials.servers.forked:ForkedServer",
        "http": "mcptrials.servers.http:HttpServer",
        "continuation": "mcptrials.servers.session:continue_session",
        "python": "mcptrials.servers.in_process:in_process_server",
        "session": "mcptrials.servers.session:open_session",
        "stdio": "mcptrials.servers.stdio:StdioServer",
        "token": "mcptrials.servers.token:TokenSource",
    },
    "readers": {
        "database": "mcptrials.environment.database:Database",
        "http": "mcptrials.environment.http_request:fetch",
    },
    "graders": {
        "call_order": "mcptrials.graders.call_rules:CallOrder",
        "command": "mcptrials.graders.command:Command",
        "exact_answer": "mcptrials.graders.exact_answer:ExactAnswer",
        "forbidden_tools": "mcptrials.graders.call_rules:ForbiddenTools",
        "max_calls": "mcptrials.graders.call_rules:MaxCalls",
        "no_tool_call": "mcptrials.graders.call_rules:NoToolCall",
        "only_changes": "mcptrials.graders.changes:OnlyChanges",
        "python": "mcptrials.graders.python:PythonFunction",
        "required_tools": "mcptrials.graders.call_rules:RequiredTools",
        "state_check": "mcptrials.graders.state_check:StateCheck",
        "state_equals_reference": "mcptrials.graders.changes:StateEqualsReference",
    },
}


def load(kind: Kind, name: str, project_dir: Path | None = None) -> Any:
    """The class or function that a name stands for.

    Args:
        name: a built-in, `module:attr`, `./file.py:attr` (relative to `project_dir`), or an entry point of group
            `mcptrials.<kind>`.

    Raises:
        UsageError: nothing by that name, or it cannot be imported.
    """
    path = find(kind, name)
    try:
        with boundary(HarnessError, "plugin", f"cannot load {path!r}"):
            return _resolve(path, project_dir)
    except HarnessError as exc:
        raise UsageError(exc.message, hint="check the path and what it needs") from exc


def find(kind: Kind, name: str) -> str:
    """The import path that a name stands for; nothing is imported.

    Raises:
        UsageError: nothing by that name.
    """
    path = BUILT_IN[kind].get(name)
    if path is None and ":" in name:
        path = name
    if path is None:
        points = {point.name: point.value for point in importlib.metadata.entry_points(group=f"mcptrials.{kind}")}
        if name not in points:
            raise UsageError(
                f"there is no {kind.removesuffix('s')} {name!r}", hint=nearest(name, [*BUILT_IN[kind], *points])
            )
        path = points[name]
    return path


def _resolve(path: str, project_dir: Path | None) -> Any:
    module_name, _, attribute = path.rpartition(":")
    if module_name.endswith(".py"):
        module = _load_file((project_dir or Path()) / module_name)
    else:
        module = importlib.import_module(module_name)
    if not hasattr(module, attribute):
        hint = nearest(attribute, (name for name in vars(module) if not name.startswith("_")))
        raise AttributeError(f"{module_name} has no {attribute!r}" + (f"; {hint}" if hint else ""))
    return getattr(module, attribute)


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    name = f"_mcptrials_{path.stem}_{abs(hash(str(path.resolve())))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
