"""The table of the servers: what the tests of a session saw of each."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Row:
    """One server."""

    package: str
    version: str
    era: str
    tools: int
    start_ms: float


ROWS = pytest.StashKey[list[Row]]()
"""Where a session collects them."""

HEAD = """# Servers that the tests evaluate

`make test-servers` installs these servers from PyPI and npm, each in an environment of its own and in these versions,
and evaluates each through `mcptrials run` with a scripted model: the tools are listed, one or two are called, what
comes back and what is left behind must be what is known, and no process or file may remain. `make servers-table` writes
this page.

"""
TAIL = """
The *era* is the protocol version that server and client agreed on. *Start* is the time from the start of the process to
the end of its tool list, the faster of two trials on a machine with two cores: most of it is the import of the SDK.
"""


def markdown(rows: Sequence[Row]) -> str:
    lines = ["| server | version | era | tools | start |", "|---|---|---|---|---|"]
    lines += [f"| {row.package} | {row.version} | {row.era} | {row.tools} | {row.start_ms:.0f} ms |" for row in rows]
    return "\n".join(lines) + "\n"


def text(rows: Sequence[Row]) -> list[str]:
    width = max(len(row.package) for row in rows)
    lines = [f"{'server':{width}}  {'version':12} {'era':12} tools  start"]
    cells = (
        f"{row.package:{width}}  {row.version:12} {row.era:12} {row.tools:5}  {row.start_ms:.0f} ms" for row in rows
    )
    return [*lines, *cells]
