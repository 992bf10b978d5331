"""The immutable, strict kinds of data that the nouns are made of."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Strict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Strict(False)]
"""A tuple that may be written as a list; its items stay strict."""


class Frozen(BaseModel):
    """A frozen pydantic model that refuses unknown keys and does not coerce types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class UserData(BaseModel):
    """A frozen part of a user's file: an unknown key is an error that knows the valid ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _name_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for key in data:
                if key not in known and key not in cls.model_fields:
                    raise unknown_key(key, known)
        return data


def unknown_key(key: Any, known: Iterable[str]) -> PydanticCustomError:
    """A key that is not one of `known`."""
    return PydanticCustomError("unknown_key", "unknown key {shown}", _context(key) | {"known": sorted(known)})


def wrong_key(key: Any, what: str) -> PydanticCustomError:
    """What is wrong with one key of a value, found while the whole of it is validated."""
    return PydanticCustomError("wrong_key", "{what}", _context(key) | {"what": what})


def inside(key: Any, error: ValidationError) -> PydanticCustomError:
    """The first error of a part at `key` that is validated by itself."""
    return inside_problem(key, error.errors(include_url=False)[0])


def inside_problem(key: Any, problem: Mapping[str, Any]) -> PydanticCustomError:
    """One error, as pydantic describes it, of a part at `key`."""
    return PydanticCustomError("inside", "{what}", _context(key) | {"problem": problem, "what": problem["msg"]})


def _context(key: Any) -> dict[str, Any]:
    return {"key": key, "shown": repr(key)}
