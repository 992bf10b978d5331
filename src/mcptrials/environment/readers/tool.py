"""`tool`: what a tool of the trial's own server answers, for state that lives in its process."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from mcptrials import excerpt
from mcptrials.encoding import dump_text
from mcptrials.environment.look import Look, names_in
from mcptrials.environment.readers.json_value import at_path, json_value
from mcptrials.environment.remains import MAX_BYTES, TIMEOUT_S, ReadError
from mcptrials.errors import ServerError
from mcptrials.frozen import UserData
from mcptrials.jsonpath import check_pick

_SHOWN = 300


class ToolReader(UserData):
    """Asked after the host ended, on the connection that it used, and before the servers are closed."""

    tool: str = Field(min_length=1)
    args: dict[str, Any] = {}
    value: Literal["text", "structured"] = "text"
    path: str | None = None
    """Into the structured content, or into the JSON of the text."""
    missing_ok: bool = False
    """Null, not an error, when the tool answers with an error: what it was asked for is not there."""
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)
    before_close: Literal[True] = True

    @field_validator("path")
    @classmethod
    def _path_parses(cls, value: str | None) -> str | None:
        if value is not None:
            check_pick(value)
        return value

    def names(self) -> set[str]:
        return names_in(self.args)

    def target(self, servers: Collection[str]) -> tuple[str, str]:
        """The server and its tool, whose own name may hold a `/`.

        Raises:
            LookupError: none of the servers is meant.
        """
        server, slash, tool = self.tool.partition("/")
        if slash and server in servers:
            return server, tool
        if len(servers) == 1:
            return next(iter(servers)), self.tool
        known = ", ".join(servers) or "none"
        raise LookupError(f"tool {self.tool!r} names no server: write SERVER/TOOL; servers here: {known}")

    async def read(self, look: Look) -> Any:
        if look.servers is None:
            raise ReadError(f"tool {self.tool!r} can be asked during a trial only")
        try:
            server, tool = self.target(look.servers.names)
            given = await look.servers.call(server, tool, look.fill_value(self.args), self.timeout_seconds)
        except (LookupError, ServerError) as exc:
            raise ReadError(str(exc)) from exc
        if given.status == "tool_error" and self.missing_ok:
            return None
        if given.status != "ok":
            said = given.error if given.error is not None else given.result
            raise ReadError(f"tool {self.tool!r}: {given.status}{_shown(said)}")
        return self._found(given.result)

    def _found(self, result: Mapping[str, Any]) -> Any:
        text = "\n".join(_texts(result["content"]))
        if self.value == "text":
            if len(text) > MAX_BYTES:
                raise ReadError(f"tool {self.tool!r} answered with more than {MAX_BYTES >> 20} MiB")
            return text if self.path is None else json_value(text, self.path)
        if "structuredContent" not in result:
            raise ReadError(f"tool {self.tool!r} answered without structuredContent")
        found = at_path(result["structuredContent"], self.path)
        if len(dump_text(found)) > MAX_BYTES:
            raise ReadError(f"tool {self.tool!r} answered with more than {MAX_BYTES >> 20} MiB")
        return found


def _texts(content: list[Any]) -> list[str]:
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]


def _shown(said: Any) -> str:
    if said is None:
        return ""
    content = said.get("content") if isinstance(said, dict) else None
    words = _texts(content) if isinstance(content, list) else []
    text = " ".join((" ".join(words) or dump_text(said)).split())
    return f": {excerpt.beginning(text, _SHOWN)}"
