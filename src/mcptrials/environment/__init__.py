"""The world of one trial: its fixtures and reset, its state hash, and the readers that look at it afterwards."""

from mcptrials.environment.look import LiveServers
from mcptrials.environment.reader import Reader, parse_reader
from mcptrials.environment.readers.changes import ChangesReader
from mcptrials.environment.readers.command import CommandReader
from mcptrials.environment.readers.file import FileReader
from mcptrials.environment.readers.python import PythonReader
from mcptrials.environment.readers.sql import SqlReader
from mcptrials.environment.readers.tool import ToolReader
from mcptrials.environment.sharing import is_outside, resets_apart, shared_state
from mcptrials.environment.snapshot import Snapshot, take_snapshot
from mcptrials.environment.spec import EnvironmentSpec
from mcptrials.environment.world import Environment, TrialPlaces

__all__ = [
    "ChangesReader",
    "CommandReader",
    "Environment",
    "EnvironmentSpec",
    "FileReader",
    "LiveServers",
    "PythonReader",
    "Reader",
    "Snapshot",
    "SqlReader",
    "ToolReader",
    "TrialPlaces",
    "is_outside",
    "parse_reader",
    "resets_apart",
    "shared_state",
    "take_snapshot",
]
