"""What a grader's program says as JSON: a value, a reason, evidence; read without trust."""

import math
from collections.abc import Mapping
from typing import Any

from mcptrials import excerpt
from mcptrials.encoding import dump_text
from mcptrials.graders.aside import EVIDENCE, REASON
from mcptrials.protocols import Judgement


def judgement_of(said: Any, what: str) -> Judgement:
    """A bool, a number from 0 to 1, or a mapping with `passed` or `value`; anything else decides nothing."""
    if not isinstance(said, Mapping):
        return _judged(said, None, None, what)
    given = [key for key in ("passed", "value") if key in said]
    if not given:
        return Judgement(None, f"{what} gave neither 'passed' nor 'value'")
    values = [_judged(said[key], said.get("reason"), said.get("evidence"), f"{what}: {key!r}") for key in given]
    unclear = next((each for each in values if each.value is None), None)
    if unclear or len({passes(each.value) for each in values}) > 1:
        return unclear or Judgement(None, f"{what}: 'passed' and 'value' contradict each other")
    return values[-1]


def passes(value: bool | float | None) -> bool:
    return value is not None and value >= 1


def _judged(value: Any, reason: Any, evidence: Any, what: str) -> Judgement:
    shown = None if evidence is None else _text(evidence, EVIDENCE)
    if value is None:
        return Judgement(None, "it could not decide" if reason is None else _text(reason, REASON), shown)
    if not isinstance(value, bool | int | float):
        return Judgement(None, f"{what} is {_text(value, 80)!r}, no bool and no number from 0 to 1")
    if not isinstance(value, bool):
        if math.isnan(value) or not 0 <= value <= 1:
            return Judgement(None, f"{what} is {value}, no number from 0 to 1")
        value = float(value)
    default = "match" if passes(value) else "wrong" if value == 0 else "partial"
    return Judgement(value, default if reason is None else _text(reason, REASON), shown)


def _text(value: Any, limit: int) -> str:
    return excerpt.beginning(value if isinstance(value, str) else dump_text(value), limit)
