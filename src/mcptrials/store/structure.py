"""What of a run's files is structure, which stands there as it is: keys, ids, enumerations, counts and hashes.

All else is text of users, servers, models and providers, and is scrubbed of secrets. Names that a user chose are
structure too: a project in which a secret stands in one is refused before a run.
"""

from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from mcptrials.events import ModelRequest
from mcptrials.record import Record, Verdicts
from mcptrials.redaction import Shape
from mcptrials.task import Task

_RECORD_IDS = frozenset(
    {
        *("run_id", "task_id", "model", "agent_harness", "transcript", "arm", "arm_label", "variant", "cause", "stop"),
        *("type", "hash", "suite_hash", "task_hash", "environment_hash", "tools_hash", "reply_hash"),
        *("versions", "started_at", "server_faults"),
    }
)
_EVENT_IDS = frozenset({"server", "tools_hash", "how", "policy", "what", "stop", "cause", "limit"})
_TASK_IDS = frozenset({"id", "type"})
_MANIFEST_IDS = (
    *("schema_version", "run_id", "created_at", "project_file", "versions", "split", "seed", "trials", "trials_asked"),
    *("project_trials", "concurrency", "limits", "max_invalid", "use"),
    *("suite_hash", "task_hashes", "environment_hashes", "server_hashes"),
)
_SANDBOX: Shape = dict.fromkeys(("mode", "in_force", "abi", "program", "network", "limits"), "keep")
_ARM_IDS = ("id", "variant", "host", "model", "overrides")


def _fields(model: type[BaseModel], ids: frozenset[str]) -> dict[str, Shape]:
    """The shapes of a model's fields; those of others' text have none."""
    shapes: dict[str, Shape | None] = {
        name: "keep" if name in ids else _shape(field.annotation, ids) for name, field in model.model_fields.items()
    }
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _shape(annotation: Any, ids: frozenset[str]) -> Shape | None:
    """Numbers, flags and enumerations are kept, whatever their field is called."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _fields(annotation, ids)
    if annotation in (int, float, bool, NoneType) or get_origin(annotation) is Literal:
        return "keep"
    if get_origin(annotation) in (Union, UnionType, tuple):
        shapes_of_parts = [_shape(part, ids) for part in get_args(annotation) if part is not Ellipsis]
        if None in shapes_of_parts:
            return None
        return next((shape for shape in shapes_of_parts if shape != "keep"), "keep")
    return None


@cache
def event_shape(kind: type[BaseModel]) -> Shape:
    """Of one kind of event."""
    return _fields(kind, _EVENT_IDS) | ({"params": {}} if kind is ModelRequest else {})


@cache
def record_shape() -> Shape:
    """Of a record."""
    return _fields(Record, _RECORD_IDS) | {"params": {"*": {}}}


@cache
def verdicts_shape() -> Shape:
    """Of a line of grades."""
    return _fields(Verdicts, _RECORD_IDS)


@cache
def manifest_shape() -> Shape:
    """Of a run's frozen plan."""
    return {
        **dict.fromkeys(_MANIFEST_IDS, "keep"),
        "tasks": _fields(Task, _TASK_IDS),
        "environment": {"readers": {}},
        "arms": {**dict.fromkeys(_ARM_IDS, "keep"), "model_settings": {}, "host_settings": {}},
        "variants": {"*": {"*": {}}},
        "overrides": {"*": {"tools": {"*": {"name": "keep"}}, "instructions": {}, "naming": "keep"}},
        "servers": {"*": {}},
        "preflight": {"*": {"*": {"tools_hash": "keep", "sandbox": _SANDBOX}}},
    }


WIRE: Shape = {"ms": "keep", "dir": "keep"}
"""Of one frame in a wire log."""
