"""Vocabulary: what the templates of both forms can call."""

from collections.abc import Callable, Mapping
from typing import Any

from mcptrials import shares
from mcptrials.comparison.telling import side_names
from mcptrials.counting import counted
from mcptrials.page import figures, wording

FILTERS: Mapping[str, Callable[..., str]] = {
    "percent": shares.percent,
    "points": shares.points,
    "duration": wording.duration,
    "count": wording.count,
}
NAMES: Mapping[str, Any] = {
    "counted": counted,
    "figures": figures,
    "shares": shares,
    "side_names": side_names,
    "wording": wording,
}
