"""The immutable, strict kinds of data that the nouns are made of."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Strict, model_validator
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
                    raise PydanticCustomError("unknown_key", "unknown key {key}", {"key": key, "known": sorted(known)})
        return data
