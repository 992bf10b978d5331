"""Sampling parameters that a model turned out not to take: dropped from then on, and named."""

import re
from collections.abc import Mapping
from typing import Any

SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "repeat_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
)
"""Those that a run may go without, since the record says so. Any other setting is the user's to mend."""
_BAD_VALUE = re.compile(
    r"\b(between|range|(less|greater) than|at (most|least)|maximum|minimum|valid (number|integer|float|dict\w*)"
    r"|invalid type)\b|[<>≤≥]=?\s*-?\d",
    re.IGNORECASE,
)
"""What is said of a value that is wrong, not of a parameter that is not taken: the user's to mend as well."""
CONTENT = frozenset({"messages", "input", "system", "instructions", "tools"})


class Refused:
    """What one model refused, over all its requests."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def without(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A body without what was refused before."""
        return {key: value for key, value in body.items() if key not in self._names}

    def learn(self, message: str, body: Mapping[str, Any]) -> None:
        """Takes note of the parameter that a refusal of this body names.

        Of several the last alone: "temperature and top_p cannot both be specified" leaves one of them.
        """
        if _BAD_VALUE.search(message):
            return
        found = {name: _place(name, message) for name in SAMPLING if name in body}
        named = [name for name, place in found.items() if place >= 0]
        if named:
            self._names[max(named, key=found.__getitem__)] = None


def parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a request asks for besides its content."""
    return {key: value for key, value in body.items() if key not in CONTENT}


def _place(name: str, message: str) -> int:
    places = [match.start() for match in re.finditer(rf"(?<![\w.-]){name}(?![\w-])", message)]
    return places[-1] if places else -1
