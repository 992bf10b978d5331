"""The servers that an MCP client's own file lists: `.mcp.json`, Claude Desktop, VS Code, Cursor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcptrials.errors import UsageError
from mcptrials.source import Keys, Source, nearest
from mcptrials.starter.entry import Entry, without_fragment
from mcptrials.starter.jsonc import load_jsonc

USUAL = (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json")
"""Where clients keep the servers of a folder, the most general first."""
_FOR_ALL_FOLDERS = "claude_desktop_config.json"
_LISTS: tuple[Keys, ...] = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers"))
_OF_THE_CLIENT = {
    "accept",
    "content-type",
    "content-length",
    "host",
    "connection",
    "transfer-encoding",
    "mcp-session-id",
}
"""Headers that every MCP client sets itself (spec, basic/transports)."""
_URLS = ("url", "serverUrl", "httpUrl")
_KNOWN = {"command", "args", "env", "cwd", "headers", "type", "transport", "disabled", *_URLS}
_KINDS = {"stdio": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http", "sse": "sse"}


@dataclass(frozen=True)
class ClientFile:
    """The entries of one file, and what of it was not understood."""

    path: Path
    entries: tuple[Entry, ...]
    notices: tuple[str, ...]


def find_client_file(folder: Path) -> Path:
    """The file of a folder's clients that lists servers.

    Raises:
        UsageError: there is none.
    """
    for name in USUAL:
        if (folder / name).is_file():
            return folder / name
    hint = "give a command (mcptrials init -- python -m my_server), --url URL, or --from FILE"
    raise UsageError(f"no server is named, and the folder has no {', '.join(USUAL)}", where=str(folder), hint=hint)


def read_client_file(path: Path, name: str | None = None) -> ClientFile:
    """The servers of a file, or the one that is named.

    Raises:
        UsageError: the file lists no servers, or not that one, or an entry cannot be understood.
    """
    source = load_jsonc(path)
    place, listed = _server_list(source)
    if name is not None and name not in listed:
        raise UsageError(f"it lists no server {name!r}", where=source.where(place), hint=nearest(name, listed))
    notices: list[str] = []
    entries = []
    for each in listed if name is None else (name,):
        entry = _entry(source, (*place, each), notices)
        if entry is not None and listed[each].get("disabled") is True and name is None:
            notices.append(f"server {each!r} is disabled there and was left out; --server {each!r} takes it")
        elif entry is not None:
            entries.append(entry)
    if not entries:
        raise UsageError("it lists no server that could be used", where=source.where(place), hint="; ".join(notices))
    return ClientFile(path, tuple(entries), tuple(notices))


def _server_list(source: Source) -> tuple[Keys, Mapping[str, Any]]:
    for place in _LISTS:
        value = source.value
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict) and value:
            return place, value
    what = "the file lists no MCP servers: it has neither 'mcpServers' nor 'servers' with an entry"
    raise UsageError(what, where=str(source.path), hint="--from takes the file of an MCP client, such as .mcp.json")


def _entry(source: Source, place: Keys, notices: list[str]) -> Entry:
    value, name = _at(source, place), str(place[-1])
    if not isinstance(value, dict):
        raise UsageError("a server is an object with 'command' or 'url'", where=source.where(place))
    unknown = [key for key in value if key not in _KNOWN]
    if unknown:
        notices.append(f"server {name!r}: {', '.join(map(repr, unknown))} is not used here and was left out")
    _check_kind(source, place, value, notices)
    url_key = next((key for key in _URLS if value.get(key)), None)
    if (url_key is None) == (not value.get("command")):
        what = "has both 'command' and 'url'" if url_key else "has neither 'command' nor 'url'"
        raise UsageError(f"server {name!r} {what}", where=source.where(place), hint="one of them starts or finds it")
    if url_key:
        url, headers = _text(source, (*place, url_key)), _texts(source, (*place, "headers"))
        kept = {header: text for header, text in headers.items() if header.lower() not in _OF_THE_CLIENT}
        return Entry(name=name, base=_workspace(source.path), url=without_fragment(url), headers=kept)
    return Entry(
        name=name,
        base=_workspace(source.path),
        command=_text(source, (*place, "command")),
        args=_words(source, (*place, "args")),
        env=_texts(source, (*place, "env")),
        cwd=_text(source, (*place, "cwd")) if value.get("cwd") else None,
    )


def _check_kind(source: Source, place: Keys, value: Mapping[str, Any], notices: list[str]) -> None:
    given = value.get("type", value.get("transport"))
    kind = _KINDS.get(given, "unknown") if isinstance(given, str) else None
    if kind == "unknown":
        what = f"server {place[-1]!r} is of type {given!r}"
        raise UsageError(what, where=source.where(place), hint="servers are of type stdio or http")
    if kind == "sse":
        notices.append(f"server {place[-1]!r} is of type 'sse', which MCP has replaced; it may refuse Streamable HTTP")


def _workspace(path: Path) -> Path:
    """The folder that a client starts its servers in, by convention."""
    if path.name == _FOR_ALL_FOLDERS:
        return Path.cwd()
    folder = path.resolve().parent
    return folder.parent if folder.name in (".vscode", ".cursor") else folder


def _at(source: Source, place: Keys) -> Any:
    value = source.value
    for key in place:
        value = value.get(key) if isinstance(value, dict) else value[key]
    return value


def _text(source: Source, place: Keys) -> str:
    value = _at(source, place)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return getattr(value, "written", None) or str(value)
    raise UsageError("should be text", where=source.where(place))


def _words(source: Source, place: Keys) -> tuple[str, ...]:
    value = _at(source, place)
    if value is not None and not isinstance(value, list):
        raise UsageError("should be a list of texts", where=source.where(place))
    return tuple(_text(source, (*place, index)) for index in range(len(value or ())))


def _texts(source: Source, place: Keys) -> dict[str, str]:
    value = _at(source, place)
    if value is not None and not isinstance(value, dict):
        raise UsageError("should be an object of texts", where=source.where(place))
    names: Sequence[str] = [name for name, each in (value or {}).items() if each is not None]
    return {name: _text(source, (*place, name)) for name in names}
