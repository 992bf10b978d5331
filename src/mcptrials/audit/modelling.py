"""Models: built from their settings, and those that cost something asked for one tool call unless offline."""

from collections.abc import Callable

from mcptrials.audit.line import Line
from mcptrials.errors import UsageError
from mcptrials.project import ModelConfig, Project
from mcptrials.protocols import KnowsTasks
from mcptrials.runner.preflight import is_free, make_model, try_model


async def model_lines(project: Project, *, offline: bool, notice: Callable[[str], None]) -> list[Line]:
    """One line per model."""
    return [await _line(config, project, offline, notice) for config in project.config.models]


async def _line(config: ModelConfig, project: Project, offline: bool, notice: Callable[[str], None]) -> Line:
    free = is_free(config)
    if offline and not free:
        return Line("models", "ok", config.model, "not asked: --offline", None, {"asked": False})
    try:
        model = make_model(config, project.dir, lambda *_: None)
        try:
            if isinstance(model, KnowsTasks):
                model.check_tasks(task.id for task in project.suite.tasks if task.split == "train" and not task.draft)
            if free:
                return Line("models", "ok", config.model, "costs nothing; not asked", None, {"asked": False})
            notice(f"asking {config.model} for one tool call")
            warning = await try_model(config, model, project.config.limits.output_tokens_per_request)
        finally:
            await model.aclose()
    except UsageError as exc:
        where = f"{exc.where}: " if exc.where else ""
        return Line("models", "fail", config.model, f"{where}{exc.what}", exc.hint)
    if warning:
        return Line("models", "warn", config.model, warning, "look at the first trials", {"asked": True})
    return Line("models", "ok", config.model, "answered with the tool call it was asked for", None, {"asked": True})
