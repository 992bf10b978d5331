"""`file`: a file's text, JSON, lines, or whether it exists."""

import io
import os
from typing import Any, Literal

from anyio import to_thread
from pydantic import Field, field_validator

from mcptrials.environment.look import Look, names_in, path_part
from mcptrials.environment.readers.json_value import check_path, json_value
from mcptrials.environment.remains import read_regular
from mcptrials.frozen import UserData


class FileReader(UserData):
    """A file that is not there is null: that is a state too."""

    file: str
    as_: Literal["text", "json", "lines", "exists"] = Field(default="text", alias="as")
    path: str | None = None
    before_close: bool = False

    _path_parses = field_validator("path")(check_path)

    def names(self) -> set[str]:
        return names_in(self.file)

    async def read(self, look: Look) -> Any:
        file = look.place.trial_dir / look.fill(self.file, path_part)
        if self.as_ == "exists":
            return await to_thread.run_sync(os.path.lexists, file)
        try:
            text = await to_thread.run_sync(read_regular, file, look.place.trial_dir)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if self.as_ == "lines":
            return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]
        return text if self.as_ == "text" else json_value(text, self.path)
