"""`python`: what a function of the user's returns."""

import asyncio
import inspect
from collections.abc import Iterable
from functools import partial
from typing import Any

from pydantic import Field, field_validator

from mcptrials.encoding import dump_text, parse_foreign
from mcptrials.environment.look import Look, names_in
from mcptrials.environment.own_thread import in_own_thread
from mcptrials.environment.remains import MAX_BYTES, TIMEOUT_S, ReadError
from mcptrials.errors import describe
from mcptrials.frozen import UserData


class PythonReader(UserData):
    """`function(place, **params)`; names that no parameter mentions are parameters themselves."""

    python: str
    params: dict[str, Any] = {}
    timeout_seconds: float = Field(default=TIMEOUT_S, gt=0)
    before_close: bool = False

    @field_validator("python")
    @classmethod
    def _names_a_function(cls, value: str) -> str:
        module, colon, function = value.rpartition(":")
        if not (module and colon and function):
            raise ValueError("a function is written module:function or ./file.py:function")
        return value

    def names(self) -> set[str]:
        return names_in(self.params)

    def parameters(self, given: Iterable[str]) -> list[str]:
        """The names that the function is called with besides the place, where a pattern gives some."""
        used = self.names()
        return sorted({*self.params, *(name for name in given if name not in used)})

    async def read(self, look: Look) -> Any:
        unused = {name: value for name, value in look.bound.items() if name not in self.names()}
        function = look.load(self.python)
        call = partial(_call, function, look.place, **(unused | look.fill_value(self.params)))
        value = await in_own_thread(call, self.timeout_seconds, repr(self.python))
        try:
            return _as_json(value)
        except (TypeError, ValueError, RecursionError) as exc:
            raise ReadError(f"{self.python!r} returned what is no JSON: {describe(exc)}") from exc


def _call(function: Any, /, *args: Any, **params: Any) -> Any:
    result = function(*args, **params)
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Any) -> Any:
    return await result


def _as_json(value: Any) -> Any:
    """What the record will hold: JSON, of a size that can be kept."""
    text = dump_text(value)
    if len(text) > MAX_BYTES:
        raise ReadError(f"it returned more than {MAX_BYTES >> 20} MiB")
    return parse_foreign(text)
