"""A new `mcptrials.yaml`, with what can be said of the environment as comments."""

import os
from collections.abc import Sequence
from pathlib import Path

from mcptrials.starter.entry import Entry
from mcptrials.starter.hints import StateHint, state_hints
from mcptrials.starter.yaml_lines import commented, indented, scalar, value

MODEL = "local:qwen2.5-coder-1.5b"
_ENDPOINT = "http://127.0.0.1:11434/v1"


def project_text(entries: Sequence[Entry], servers: Sequence[Sequence[str]], project_dir: Path) -> str:
    """The whole file.

    Args:
        servers: the lines of each server, from column 0.
    """
    lines = ["# What is evaluated: servers, models, tasks.", "version: 1", "", "servers:"]
    for server in servers:
        lines += indented(server, 2)
    hints = [(entry, hint) for entry in entries for hint in state_hints(entry)]
    lines += [
        "",
        "# A world of its own for every trial. With it, tools that write are shown to the model too,",
        "# unless a server's tools.allow leaves them out.",
    ]
    lines += commented(_environment(hints, project_dir))
    lines += ["", "models:", f"  - {MODEL}  # on this machine, without a key"]
    lines += ['  # - {model: "openai:NAME", api_key: "${OPENAI_API_KEY}"}']
    lines += [f'  # - {{model: "openai:NAME", base_url: "{_ENDPOINT}"}}  # Ollama, llama.cpp, vLLM ...']
    lines += ["", "trials: 5", "tasks:", '  - "tasks/*.yaml"', ""]
    return "\n".join(lines)


def _environment(hints: Sequence[tuple[Entry, StateHint]], project_dir: Path) -> list[str]:
    copies: dict[str, tuple[str, StateHint]] = {}
    for entry, hint in hints:
        copies.setdefault(hint.own, (_from_project(entry, hint, project_dir), hint))
    if not copies:
        example = StateHint("state.db", "state.db", is_database=True, is_folder=False)
        copies[example.own] = ("fixtures/state.db", example)
    files = [f"  {scalar(source)}: {scalar(own)}  # copied before every trial" for own, (source, _) in copies.items()]
    reset = ["reset: []  # then these steps: {command: [...]} or {sql: ..., url: ...}"]
    state = value([{"file": own} for own in copies])
    readers = [f"  {line}" for index, (_, hint) in enumerate(copies.values()) for line in _reader(hint, index)]
    keys = [
        "files:",
        *files,
        *reset,
        f"state_hash: {state}",
        "readers:  # what state_check graders may ask: put tables and columns of yours in",
        *readers,
    ]
    return ["environment:", *indented(keys, 2)]


def _from_project(entry: Entry, hint: StateHint, project_dir: Path) -> str:
    path = Path(hint.path)
    return hint.path if path.is_absolute() else os.path.relpath(entry.base / path, project_dir)


def _reader(hint: StateHint, index: int) -> list[str]:
    number = f" {index + 1}" if index else ""
    if hint.is_database:
        sql = {"sql": "select name from items where id = :id", "url": f"sqlite:///{hint.own}"}
        return [f"{scalar(f'name of item {{id}}{number}')}: {value(sql)}"]
    if hint.is_folder:
        return [f"{scalar(f'text of {{file}}{number}')}: {value({'file': hint.own + '/{file}', 'as': 'text'})}"]
    return [f"{scalar(f'text of the file{number}')}: {value({'file': hint.own, 'as': 'text'})}"]
