"""Prints the table of the servers, and writes it where MCPTRIALS_SERVERS_TABLE says."""

import os
from pathlib import Path

import pytest
from tests.real_servers.catalogue import SERVERS
from tests.real_servers.table import HEAD, ROWS, TAIL, markdown, text


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash[ROWS]
    if rows:
        terminalreporter.section("servers")
        for line in text(rows):
            terminalreporter.write_line(line)
    page = os.environ.get("MCPTRIALS_SERVERS_TABLE")
    if page and len(rows) == len(SERVERS):
        Path(page).write_text(HEAD + markdown(rows) + TAIL, "utf-8")
