"""The world of one trial: its fixtures and reset, its state hash, and the readers that look at it afterwards."""

from mcptrials.environment.reader import CommandReader, FileReader, Reader, SqlReader, parse_reader
from mcptrials.environment.spec import EnvironmentSpec
from mcptrials.environment.world import Environment, TrialPlaces

__all__ = [
    "CommandReader",
    "Environment",
    "EnvironmentSpec",
    "FileReader",
    "Reader",
    "SqlReader",
    "TrialPlaces",
    "parse_reader",
]
