"""An issue tracker as an MCP server on stdio: python server.py --db tracker.db --style plain"""

import argparse
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated

from descriptions import STYLES, Descriptions
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

INSTRUCTIONS = (
    "An issue tracker with the projects BILL (Billing), AUTH (Accounts) and WEB (Web app). "
    "Issue keys have gaps: never guess one. When the user describes an issue without its key, search for it first. "
    "Questions that do not need the tracker need no tool."
)
LABEL = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SMALL_WORDS = {"a", "an", "and", "for", "in", "is", "of", "on", "that", "the", "to", "with"}
NEXT = "Next: add_label with this key to label it, or get_issue for its assignee and version."
SHOWN = 8
"""Results are short, so that many of them fit into a model's context."""

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

SEARCH = """
    select key, type, status, title from issues
    where (:project = '' or project = :project)
    order by project, number
"""
ISSUE = "select key, title, type, status, priority, assignee, version from issues where key = :key"
HISTORY = "select day, event from history where key = :key order by day, id"


class Tracker:
    """The issues behind the tools: arguments may come as models write them, failures say what to do next."""

    def __init__(self, db: Path) -> None:
        self._uri = f"{db.resolve().as_uri()}?mode=rw"

    def search(self, project: str, text: str) -> str:
        """Key, type, status and title of the issues with the most words of the text."""
        found = self._rows(SEARCH, {"project": self._project(project)})
        lines = [" | ".join(row.values()) for row in found]
        words = set(re.findall(r"[\w-]+", text.lower())) - SMALL_WORDS
        hits = {line: sum(word in line.lower() for word in words) for line in lines}
        best = max(hits.values(), default=0)
        return _listing([line for line in lines if hits[line] == best and (best or not words)])

    def issue(self, key: str) -> str:
        """One issue, a field per line."""
        known = self._key(key)
        (fields,) = self._rows(ISSUE, {"key": known})
        return "\n".join(f"{name}: {value}" for name, value in {**fields, "labels": self._labels(known)}.items())

    def history(self, key: str) -> str:
        """The dated events of one issue."""
        events = self._rows(HISTORY, {"key": self._key(key)})
        return "\n".join([f"total: {len(events)}", *(f"{event['day']} {event['event']}" for event in events)])

    def add_label(self, key: str, label: str) -> str:
        """Add a label; one that is there already stays."""
        known, name = self._key(key), label.strip().lower()
        if not LABEL.fullmatch(name):
            raise ToolError(f"{label!r} is no label: write lower-case words joined by '-', without spaces.")
        self._rows("insert or ignore into labels (key, label) values (:key, :label)", {"key": known, "label": name})
        return f"Done, nothing more is needed. Labels of {known}: {self._labels(known)}"

    def _labels(self, key: str) -> str:
        rows = self._rows("select label from labels where key = :key order by label", {"key": key})
        return ", ".join(row["label"] for row in rows) or "none"

    def _project(self, wanted: str) -> str:
        """The key of a project that is called by its key or its name."""
        projects = self._rows("select key, name from projects order by key", {})
        spellings = {spelling.lower(): row["key"] for row in projects for spelling in row.values()}
        if wanted.strip().lower() in {"": "", **spellings}:
            return spellings.get(wanted.strip().lower(), "")
        known = ", ".join(f"{row['key']} ({row['name']})" for row in projects)
        raise ToolError(f"There is no project {wanted!r}. The projects are {known}.")

    def _key(self, wanted: str) -> str:
        """The key as the tracker spells it."""
        key = wanted.strip().upper()
        if self._rows(ISSUE, {"key": key}):
            return key
        raise ToolError(f"There is no issue {wanted!r}. {self._nearby(key.partition('-')[0])}")

    def _nearby(self, project: str) -> str:
        """What to do instead of asking for a key that does not exist."""
        keys = [row["key"] for row in self._rows(SEARCH, {"project": project})]
        if not project or not keys:
            return "A key is a project key, a dash and a number: call search_issues to find the right one."
        return f"{project} has {len(keys)} issues, {keys[0]} to {keys[-1]}: call search_issues to see them."

    def _rows(self, statement: str, values: Mapping[str, str]) -> list[dict[str, str]]:
        with closing(sqlite3.connect(self._uri, uri=True)) as database, database:
            cursor = database.execute(statement, values)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]


def _listing(lines: list[str]) -> str:
    if not lines:
        return "total: 0\nNothing fits: use one word of the title, or search all projects."
    more = [f"Only the first {SHOWN} are shown: add a filter."] if len(lines) > SHOWN else []
    return "\n".join([f"total: {len(lines)}", *lines[:SHOWN], *more, NEXT])


def make_server(tracker: Tracker, says: Descriptions) -> MCPServer:
    """The server, with the descriptions of one style."""
    server = MCPServer("tracker", version="1.0.0", instructions=INSTRUCTIONS, log_level="WARNING")
    project = Annotated[str, Field(description=says.project)]
    text = Annotated[str, Field(description=says.text)]
    key = Annotated[str, Field(description=says.key)]
    label = Annotated[str, Field(description=says.label)]

    @server.tool(description=says.search_issues, annotations=READS, structured_output=False)
    def search_issues(project: project = "", text: text = "") -> str:
        return tracker.search(project, text)

    @server.tool(description=says.get_issue, annotations=READS, structured_output=False)
    def get_issue(key: key) -> str:
        return tracker.issue(key)

    @server.tool(description=says.get_issue_history, annotations=READS, structured_output=False)
    def get_issue_history(key: key) -> str:
        return tracker.history(key)

    @server.tool(description=says.add_label, annotations=ADDS, structured_output=False)
    def add_label(key: key, label: label) -> str:
        return tracker.add_label(key, label)

    return server


def main() -> None:
    """Serve one database on stdio until the client closes it."""
    parser = argparse.ArgumentParser(description="An issue tracker as an MCP server on stdio.")
    parser.add_argument("--db", type=Path, required=True, help="SQLite file made by make_fixture.py")
    parser.add_argument("--style", choices=sorted(STYLES), default="plain", help="wording of the tool descriptions")
    options = parser.parse_args()
    if not options.db.is_file():
        parser.error(f"there is no database {str(options.db)!r}; make one with make_fixture.py")
    make_server(Tracker(options.db), STYLES[options.style]).run()


if __name__ == "__main__":
    main()
