"""Two or more arms against a baseline, task by task."""

from mcptrials.comparison.comparison import compare, compare_sides
from mcptrials.comparison.side import Side, find_sides, sides_of
from mcptrials.comparison.success import Question

__all__ = ["Question", "Side", "compare", "compare_sides", "find_sides", "sides_of"]
