"""Evaluate MCP servers through language models: repeated trials, graded outcomes, honest uncertainty."""

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Arm": "mcptrials.trial",
    "Endpoint": "mcptrials.protocols",
    "Grade": "mcptrials.trial",
    "GradeInput": "mcptrials.protocols",
    "Grader": "mcptrials.protocols",
    "Host": "mcptrials.protocols",
    "HostContext": "mcptrials.protocols",
    "HostResult": "mcptrials.protocols",
    "Judgement": "mcptrials.protocols",
    "McptrialsError": "mcptrials.errors",
    "Model": "mcptrials.protocols",
    "Outcome": "mcptrials.trial",
    "Project": "mcptrials.project",
    "Record": "mcptrials.record",
    "Reply": "mcptrials.protocols",
    "Run": "mcptrials.store",
    "RunOptions": "mcptrials.runner",
    "Server": "mcptrials.protocols",
    "Suite": "mcptrials.task",
    "Task": "mcptrials.task",
    "Transcript": "mcptrials.transcript",
    "Trial": "mcptrials.trial",
    "UsageError": "mcptrials.errors",
    "compare": "mcptrials.comparison",
    "estimate": "mcptrials.stats",
    "match_answer": "mcptrials.graders.answer",
    "run": "mcptrials.runner",
    "run_async": "mcptrials.runner",
    "summarise": "mcptrials.report",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604 - the table holds strings only


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mcptrials' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
