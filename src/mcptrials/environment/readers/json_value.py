"""What a reader finds in a JSON text, and the check of the path that leads to it."""

from typing import Any

from pydantic import ValidationInfo

from mcptrials.encoding import parse_foreign
from mcptrials.jsonpath import check_pick, pick


def check_path(path: str | None, info: ValidationInfo) -> str | None:
    """A path is one into JSON, and it parses."""
    if path is not None:
        check_pick(path)
        if not {"json", "structured"} & {info.data.get("as_"), info.data.get("value")}:
            raise ValueError("'path' leads into JSON only")
    return path


def json_value(text: str | bytes, path: str | None) -> Any:
    """The value of a JSON text, or what stands at `path` in it."""
    return at_path(parse_foreign(text), path)


def at_path(value: Any, path: str | None) -> Any:
    """What stands at `path`; nothing there is null, since that is a state too."""
    try:
        return pick(value, path) if path else value
    except LookupError:
        return None
