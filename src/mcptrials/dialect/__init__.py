"""Dialects: which tool names and schemas a provider takes, and the least change that makes it take one."""

from mcptrials.dialect.adaptation import Adapted, Obstacle, Rewrite, adapt
from mcptrials.dialect.providers import (
    ANTHROPIC,
    DIALECTS,
    EXACT,
    GEMINI,
    LLAMA_CPP,
    OPENAI,
    VALID,
    Dialect,
    dialect_of,
)

__all__ = [
    "ANTHROPIC",
    "DIALECTS",
    "EXACT",
    "GEMINI",
    "LLAMA_CPP",
    "OPENAI",
    "VALID",
    "Adapted",
    "Dialect",
    "Obstacle",
    "Rewrite",
    "adapt",
    "dialect_of",
]
