"""A user's YAML, JSON or JSONL file as plain values that know where they stand."""

from pathlib import Path

from mcptrials.errors import UsageError
from mcptrials.source.document import Key, Keys, Source, Unquoted, UnquotedText, dotted, read_text
from mcptrials.source.json_text import json_source
from mcptrials.source.problem import Place, alike, below, explain, nearest
from mcptrials.source.yaml_text import yaml_source

__all__ = [
    "Key",
    "Keys",
    "Place",
    "Source",
    "Unquoted",
    "UnquotedText",
    "alike",
    "below",
    "dotted",
    "explain",
    "load_source",
    "load_sources",
    "nearest",
    "read_text",
    "yaml_source",
]


def load_source(path: Path) -> Source:
    """The one document of a file.

    Raises:
        UsageError: the file cannot be read or parsed, or holds several documents.
    """
    sources = load_sources(path)
    if len(sources) != 1:
        raise UsageError(f"the file holds {len(sources)} documents instead of one", where=str(path))
    return sources[0]


def load_sources(path: Path) -> list[Source]:
    """The documents of a file: one for YAML and JSON, one per line for JSONL.

    Raises:
        UsageError: the file cannot be read or parsed; names file and line.
    """
    text = read_text(path)
    if path.suffix == ".jsonl":
        rows = enumerate(text.split("\n"), 1)
        return [json_source(path, row, number) for number, row in rows if row.strip()]
    if path.suffix == ".json":
        return [json_source(path, text, 1)]
    return [yaml_source(path, text)]
