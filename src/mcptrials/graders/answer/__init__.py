"""Whether an answer equals an expected value, and why not otherwise."""

from mcptrials.graders.answer.kinds import infer
from mcptrials.graders.answer.matching import alternatives, compare_answer, expected_problem, match_answer
from mcptrials.graders.answer.number import same_decimal
from mcptrials.graders.answer.options import KINDS, Kind, Options
from mcptrials.graders.answer.verdict import AnswerMatch, Reason
from mcptrials.graders.answer.wording import MAX_CHARS, normalise

__all__ = [
    "KINDS",
    "MAX_CHARS",
    "AnswerMatch",
    "Kind",
    "Options",
    "Reason",
    "alternatives",
    "compare_answer",
    "expected_problem",
    "infer",
    "match_answer",
    "normalise",
    "same_decimal",
]
