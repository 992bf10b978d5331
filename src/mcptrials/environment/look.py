"""Look: the place, the names and the servers of one reading, and what each name becomes where it is put."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from mcptrials.encoding import dump_text
from mcptrials.environment.remains import ReadError
from mcptrials.environment.snapshot import Snapshot
from mcptrials.protocols import CallResult, Place

_KEY = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class LiveServers(Protocol):
    """The trial's own servers, after its host and before they are closed."""

    @property
    def names(self) -> Collection[str]: ...

    async def call(self, server: str, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        """One call that is no part of the conversation.

        Raises:
            ServerError: nothing can be asked of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """Where a reader looks, and what the names of its query stand for."""

    place: Place
    bound: Mapping[str, str]
    load: Callable[[str], Any]
    """The plug of a name: what a reader needs and the package does not import by itself."""
    servers: LiveServers | None = None
    pristine: Snapshot | None = None

    def fill(self, text: str, form: Callable[[str], str] = str) -> str:
        """`text` with places expanded and each bound name put in its form; what a name brings is not filled again."""
        return _KEY.sub(
            lambda match: form(self.bound[match[1]]) if match[1] in self.bound else match[0], self.place.expand(text)
        )

    def fill_value(self, value: Any) -> Any:
        """A JSON value with each of its texts filled; a name stays a text, or a part of one."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list | tuple):
            return [self.fill_value(item) for item in value]
        return {key: self.fill_value(item) for key, item in value.items()} if isinstance(value, dict) else value

    def fill_url(self, url: str) -> str:
        """A URL whose names are data of its path and query: percent-encoded, and no way out of the path."""
        path, mark, query = url.partition("?")
        return self.fill(path, lambda part: _encoded(path_part(part))) + mark + self.fill(query, _encoded)


def names_in(value: Any) -> set[str]:
    """The names that stand in the texts of a JSON value."""
    if isinstance(value, str):
        return set(_KEY.findall(value))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return {name for item in items for name in names_in(item)}


def path_part(part: str) -> str:
    """A name in a path, which is part of one step and leads nowhere else.

    Raises:
        ReadError: it would.
    """
    if part == "." or any(piece in part for piece in ("/", "\\", "..", "\0")):
        raise ReadError(f"{part!r} may not stand in a path")
    return part


def header_part(part: str) -> str:
    """A name in a header, which stays in its line.

    Raises:
        ReadError: it would not.
    """
    if _CONTROL.search(part) or not part.isascii():
        raise ReadError(f"{part!r} may not stand in a header")
    return part


def json_part(part: str) -> str:
    """A name in a JSON text, between the quotes that stand there."""
    return dump_text(part)[1:-1]


def _encoded(part: str) -> str:
    return quote(part, safe="")
