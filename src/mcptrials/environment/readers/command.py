"""`command`: what a command prints, or its exit code."""

from typing import Any, Literal

from pydantic import Field, field_validator

from mcptrials.environment.command import last_line, run_command
from mcptrials.environment.look import Look, names_in
from mcptrials.environment.readers.json_value import check_path, json_value
from mcptrials.environment.remains import TIMEOUT_S, ReadError
from mcptrials.frozen import Items, UserData


class CommandReader(UserData):
    """A name is one argument, or a part of one."""

    command: Items[str] = Field(min_length=1)
    value: Literal["stdout", "exit_code", "json"] = "stdout"
    path: str | None = None
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)
    before_close: bool = False

    _path_parses = field_validator("path")(check_path)

    def names(self) -> set[str]:
        return names_in(self.command)

    async def read(self, look: Look) -> Any:
        argv = [look.fill(item) for item in self.command]
        code, output, errors = await run_command(argv, look.place, self.timeout_seconds)
        if self.value == "exit_code":
            return code
        if code != 0:
            raise ReadError(f"{argv[0]!r} exited with code {code}: {last_line(errors)}")
        if self.value == "stdout":
            return output.removesuffix("\n").removesuffix("\r")
        return json_value(output, self.path)
