"""The program in which one judgement of a `python` grader is made: `python python_child.py FOLDER`."""

import asyncio
import importlib
import importlib.util
import inspect
import json
import math
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Reads the request of a folder and leaves the result there; what fails ends the process with a traceback."""
    request = json.loads((folder / "request.json").read_text("utf-8"))
    sys.path[:] = request["sys_path"]
    function = _function(request["call"], Path(request["project_dir"] or "."))
    result = function(_given(folder, request))
    if inspect.isawaitable(result):
        result = asyncio.run(_awaited(result))
    (folder / "result.tmp").write_text(json.dumps({"result": _plain(result)}), "utf-8")
    (folder / "result.tmp").rename(folder / "result.json")


async def _awaited(result: Any) -> Any:
    return await result


def _function(call: str, project_dir: Path) -> Any:
    module_name, _, name = call.rpartition(":")
    if not module_name.endswith(".py"):
        return getattr(importlib.import_module(module_name), name)
    spec = importlib.util.spec_from_file_location("_mcptrials_grader", project_dir / module_name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module_name} is no Python file")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _given(folder: Path, request: dict[str, Any]) -> Any:
    """A GradeInput; the package is found only now that the paths are known."""
    protocols, tasks, trial = (importlib.import_module(f"mcptrials.{name}") for name in ("protocols", "task", "trial"))
    transcript = importlib.import_module("mcptrials.transcript").Transcript
    parse_event = importlib.import_module("mcptrials.events").parse_event
    lines = (folder / "transcript.jsonl").read_bytes().splitlines()
    outcome = json.loads((folder / "outcome.json").read_text("utf-8"))
    task = json.loads((folder / "task.json").read_text("utf-8"))
    return protocols.GradeInput(
        tasks.Task.model_validate(task, strict=False),
        trial.Outcome.model_validate(outcome, strict=False),
        transcript([parse_event(json.loads(line)) for line in lines]),
        trial_dir=request["trial_dir"] and Path(request["trial_dir"]),
        project_dir=request["project_dir"] and Path(request["project_dir"]),
        work_dir=folder,
    )


def _plain(result: Any) -> Any:
    """A result as JSON; of a Grade its parts. What is neither is told by its kind."""
    if result is None or isinstance(result, bool | int) or (isinstance(result, float) and math.isfinite(result)):
        return result
    if isinstance(result, dict):
        return {key: result[key] for key in ("passed", "value", "reason", "evidence") if key in result}
    if hasattr(result, "value") and hasattr(result, "reason"):
        parts = {"value": result.value, "reason": result.reason, "evidence": getattr(result, "evidence", None)}
        return {key: part for key, part in parts.items() if key == "value" or part is not None}
    return f"{type(result).__name__} {result!r}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
