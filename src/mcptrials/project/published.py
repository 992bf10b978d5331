"""The JSON Schemas of project and task files, for editors: generated from the data that reads these files."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

from pydantic import BaseModel

from mcptrials.environment import EnvironmentSpec
from mcptrials.graders.exact_answer import ExactAnswer
from mcptrials.plugins import BUILT_IN
from mcptrials.project.config import ProjectConfig
from mcptrials.protocols import Limits
from mcptrials.task import Task

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_SAID = {
    "ProjectConfig.version": "The version of this file's form.",
    "ProjectConfig.servers": "The MCP servers, by name; all are connected in every trial.",
    "ProjectConfig.variants": "Alternatives of the servers, by name; each is an arm of its own.",
    "ProjectConfig.environment": "The world of a trial; without it only tools that say they read are shown.",
    "ProjectConfig.models": "The models, as ADAPTER:NAME or with settings; each is an arm of its own.",
    "ProjectConfig.hosts": "What puts a model in front of the servers.",
    "ProjectConfig.trials": "How often each task is tried by each arm.",
    "ProjectConfig.concurrency": "How many trials run side by side.",
    "ProjectConfig.limits": "Bounds of every trial.",
    "ProjectConfig.tasks": "Task files, as paths or patterns relative to this file.",
    "ProjectConfig.judges": "Models that grade.",
    "ProjectConfig.seed": "Decides the order of trials and their seeds.",
    "ProjectConfig.max_invalid": "The share of trials not scored above which a run is incomplete.",
    "ProjectConfig.keep_trial_dirs": "Whether the directories of trials are kept.",
    "ProjectConfig.runs": "Where run folders are written.",
    "ServerConfig.command": "The program of a server on stdio; {trial_dir}, {project_dir} and {python} are filled in.",
    "ServerConfig.args": "Its arguments.",
    "ServerConfig.env": "Its environment variables, besides what every process needs.",
    "ServerConfig.cwd": "Its working directory, relative to the project's folder.",
    "ServerConfig.url": "Where a server over Streamable HTTP listens.",
    "ServerConfig.headers": "HTTP headers of every message to it; write ${VAR} for secrets.",
    "ServerConfig.token_command": "A command that prints the bearer token; asked again when it is old or refused.",
    "ServerConfig.ca_file": "Certificates to trust besides the system's.",
    "ServerConfig.python": "A server object in our own process: module:factory or ./file.py:factory.",
    "ServerConfig.era": "Which protocol generation to speak; auto finds out.",
    "ServerConfig.on_invalid_tool": "Whether a tool that no client can use stops the run or is left out.",
    "ServerConfig.tools": "Which of its tools the model sees.",
    "ToolsConfig.allow": "Only these.",
    "ToolsConfig.hide": "All but these.",
    "ModelConfig.model": "ADAPTER:NAME, such as openai:NAME, local:NAME or scripted:FILE.",
    "ModelConfig.base_url": "Another endpoint than the adapter's own.",
    "ModelConfig.api_key": "The key; write ${VAR}.",
    "ModelConfig.headers": "HTTP headers of every request.",
    "ModelConfig.settings": "Keys of every request, such as temperature.",
    "ModelConfig.concurrency": "How many of its trials run side by side.",
    "HostConfig.settings": "Its settings; they may also stand beside its name.",
    "HostConfig.host": "loop, or the path of a host of your own.",
    "Limits.turns": "Requests to the model.",
    "Limits.tool_calls": "Calls of tools.",
    "Limits.tokens": "Tokens of all requests and replies.",
    "Limits.output_tokens_per_request": "Tokens of one reply.",
    "Limits.connect_seconds": "For a server to start and list its tools.",
    "Limits.call_seconds": "For one tool call.",
    "Limits.trial_seconds": "For the whole trial, waits for the provider excluded.",
    "Limits.cost_usd": "Not supported yet.",
    "GraderSpec.type": "The kind of grader; its settings stand beside it.",
    "GraderSpec.name": "Its name in reports.",
    "GraderSpec.weight": "Its weight among partial grades.",
    "ReferenceCall.server": "The server, where there are several.",
    "ReferenceCall.tool": "The tool.",
    "ReferenceCall.args": "Its arguments.",
    "Reference.answer": "The right answer.",
    "Reference.calls": "The calls that lead there.",
    "Task.id": "Unique, and a safe file name.",
    "Task.prompt": "What the user asks for: a text, or {file: path}.",
    "Task.graders": "What decides whether a trial passes.",
    "Task.reference": "A solution that must pass.",
    "Task.expects": "What a right answer is: an act, no tool call, a refusal, or that nothing was found.",
    "Task.expected_tools": "Tools that a good trial calls; reported, never deciding.",
    "Task.purpose": "Whether it measures a capability or guards against a regression.",
    "Task.split": "held_out tasks run and show only when asked for.",
    "Task.tags": "Labels to choose by.",
    "Task.group": "Tasks of one group are one cluster for standard errors.",
    "Task.source": "The bug, ticket or chat that it came from.",
    "Task.notes": "For the people who read the file.",
    "Task.combine": "Whether all or any deciding graders must pass.",
    "Task.environment": "What is added to the project's environment.",
    "Task.limits": "What replaces the project's limits.",
    "Task.trials": "How often this task is tried.",
    "Task.noop_should_pass": "Whether doing nothing is right.",
}
"""Descriptions of keys whose fields carry none."""


def published_schema(kind: Literal["project", "tasks"]) -> dict[str, Any]:
    """The schema of `mcptrials.yaml`, or of task files."""
    return _project() if kind == "project" else _tasks()


def _project() -> dict[str, Any]:
    schema = _described(ProjectConfig)
    properties, defs = schema["properties"], schema["$defs"]
    properties["models"]["items"] = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/ModelConfig"}]}
    properties["hosts"]["items"] = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/HostConfig"}]}
    defs["HostConfig"]["additionalProperties"] = True  # its settings stand beside its name
    return {"$schema": DRAFT, "title": "mcptrials.yaml", **schema}


def _tasks() -> dict[str, Any]:
    task = _described(Task)
    defs = task.pop("$defs")
    for part in (EnvironmentSpec, Limits):
        inner = _described(part)
        defs |= {part.__name__: inner} | inner.pop("$defs", {})
    _as_written(task, defs["GraderSpec"])
    whole = {**task, "anyOf": [{"required": ["graders"]}, {"required": ["grader"]}], "required": ["id", "prompt"]}
    part_of_task = {key: value for key, value in task.items() if key != "required"}
    defs |= {"Task": whole, "TaskWithDefaults": part_of_task}
    several = {"type": "array", "items": {"$ref": "#/$defs/Task"}}
    inheriting = {"$ref": "#/$defs/TaskWithDefaults"}
    grouped = {"defaults": inheriting, "tasks": {"type": "array", "items": inheriting}}
    group = {"type": "object", "properties": grouped, "required": ["tasks"], "additionalProperties": False}
    return {
        "$schema": DRAFT,
        "title": "mcptrials tasks",
        "anyOf": [{"$ref": "#/$defs/Task"}, several, group],
        "$defs": defs,
    }


def _as_written(task: dict[str, Any], grader: dict[str, Any]) -> None:
    """Task files spell some keys in more ways than the data that they become."""
    properties = task["properties"]
    grader["properties"].pop("settings")
    grader["properties"]["type"]["examples"] = sorted(BUILT_IN["graders"])
    grader["additionalProperties"] = True  # the settings of its type
    grader["allOf"] = [_settings_of("exact_answer", ExactAnswer, ("expected", "aliases"))]
    spec = {"$ref": "#/$defs/GraderSpec"}
    graders = {"anyOf": [spec, {"type": "array", "items": spec, "minItems": 1}]}
    for name in ("graders", "grader"):
        properties[name] = {"description": _SAID["Task.graders"], **graders}
    file = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
    text = {"type": "string", "minLength": 1}
    properties["prompt"] = {"description": _SAID["Task.prompt"], "anyOf": [text, file]}
    properties["split"]["enum"] += ["test", "held-out"]
    for name, part in (("environment", "EnvironmentSpec"), ("limits", "Limits")):
        properties[name] = {
            "description": _SAID[f"Task.{name}"],
            "anyOf": [{"$ref": f"#/$defs/{part}"}, {"type": "null"}],
        }


def _settings_of(name: str, model: type[BaseModel], plain: Sequence[str]) -> dict[str, Any]:
    """The keys of one type of grader; those of `plain` may be integers and booleans that become text."""
    schema = _described(model)
    for key in plain:
        said = schema["properties"][key]["description"]
        value: dict[str, Any] = {"type": ["string", "integer", "boolean"]}
        several = {"type": "array", "items": value}
        many = schema["properties"][key].get("type") == "array"
        schema["properties"][key] = {"description": said, **(several if many else {"anyOf": [value, several]})}
    is_type = {"properties": {"type": {"const": name}}, "required": ["type"]}
    return {"if": is_type, "then": {"properties": schema["properties"], "required": schema["required"]}}


def _described(model: type[BaseModel]) -> dict[str, Any]:
    """pydantic's schema of a model, with a description for every key."""
    schema: dict[str, Any] = _untitled(model.model_json_schema())
    held = {model.__name__: schema, **schema.get("$defs", {})}
    for each in _models(model, set()):
        told = _attribute_docstrings(each)
        for name, field in each.model_fields.items():
            key = field.alias or name
            said = told.get(name) or _SAID.get(f"{each.__name__}.{key}")
            if said and key in held[each.__name__]["properties"]:
                held[each.__name__]["properties"][key]["description"] = " ".join(said.split())
    return schema


def _untitled(value: Any) -> Any:
    """Without the titles that pydantic makes of names."""
    if isinstance(value, list):
        return [_untitled(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _untitled(each) for key, each in value.items() if key != "title" or not isinstance(each, str)}


def _models(annotation: Any, seen: set[type]) -> Iterator[type[BaseModel]]:
    """Every model inside an annotation, itself included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
        seen.add(annotation)
        yield annotation
        for field in annotation.model_fields.values():
            yield from _models(field.annotation, seen)
    for inner in get_args(annotation):
        yield from _models(inner, seen)


def _attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The texts under the fields of a class."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class
    return {
        field.target.id: text.value.value
        for field, text in pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }
