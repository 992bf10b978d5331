"""`http`: what an address answers, while the servers still run."""

from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from mcptrials.encoding import dump_text
from mcptrials.environment.look import Look, header_part, json_part, names_in
from mcptrials.environment.readers.json_value import check_path, json_value
from mcptrials.environment.remains import TIMEOUT_S
from mcptrials.frozen import UserData


class HttpReader(UserData):
    """The JSON, the text or the status of one request."""

    http: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: dict[str, str] = {}
    body: Any = None
    """A text, or a value that is sent as JSON."""
    value: Literal["json", "text", "status"] = "json"
    path: str | None = None
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)
    before_close: Literal[True] = True

    _path_parses = field_validator("path")(check_path)

    @field_validator("http")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        address = urlsplit(value)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("an address is written http://HOST/PATH or https://HOST/PATH")
        if names_in(address.netloc):
            raise ValueError("names may stand in the path and the query of an address, not in its host")
        return value

    def names(self) -> set[str]:
        return names_in([self.http, self.headers, self.body])

    async def read(self, look: Look) -> Any:
        fetch = look.load("http")
        headers = {name: look.fill(value, header_part) for name, value in self.headers.items()}
        if self.body is None or isinstance(self.body, str):
            body = None if self.body is None else look.fill(self.body, json_part)
        else:
            body = dump_text(look.fill_value(self.body))
            headers = {"content-type": "application/json"} | headers
        request = (self.method, look.fill_url(self.http), headers, body)
        answer = await fetch(*request, status_only=self.value == "status", timeout_s=self.timeout_seconds)
        if self.value == "status":
            return answer.status
        return answer.text() if self.value == "text" else json_value(answer.body, self.path)
