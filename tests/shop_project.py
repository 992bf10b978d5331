"""A small shop as an in-process MCP server over a SQLite file and a folder of notes, and projects that evaluate it."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mcptrials.project import Project

SERVER = '''
import sqlite3
from contextlib import closing
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(read_only_hint=False)


def make(trial_dir):
    server = MCPServer("shop", version="1", log_level="ERROR")
    folder = Path(trial_dir)
    db = folder / "shop.db"

    def rows(sql, *values):
        with closing(sqlite3.connect(db)) as database, database:
            return database.execute(sql, values).fetchall()

    @server.tool(annotations=READS, structured_output=False)
    def list_orders(customer: str = "") -> str:
        """Orders, of one customer or of all."""
        found = rows("select id, customer, status, cents from orders where ? in ('', customer) order by id", customer)
        return "\\n".join([f"total: {len(found)}", *(" | ".join(map(str, row)) for row in found)])

    @server.tool(annotations=READS, structured_output=False)
    def get_order(id: int) -> str:
        """One order."""
        found = rows("select id, customer, status, cents from orders where id = ?", id)
        if not found:
            raise ToolError(f"there is no order {id}")
        return "\\n".join(f"{name}: {value}" for name, value in zip(("id", "customer", "status", "cents"), found[0]))

    @server.tool(annotations=WRITES, structured_output=False)
    def set_status(id: int, status: str) -> str:
        """Change the status of an order."""
        rows("update orders set status = ?, changed_at = hex(randomblob(4)) where id = ?", status, id)
        return "done"

    @server.tool(annotations=WRITES, structured_output=False)
    def write_note(name: str, text: str) -> str:
        """Write a note."""
        (folder / "notes").mkdir(exist_ok=True)
        (folder / "notes" / f"{name}.txt").write_text(text)
        return "written"

    return server
'''
ORDERS = [(1, "Ada", "open", 1250), (2, "Ada", "paid", 990), (3, "Bob", "open", 4400), (4, "Cyd", "sent", 75)]


def write_shop(
    folder: Path, tasks: Sequence[Mapping[str, Any]], script: Mapping[str, Any] | None = None, **keys: Any
) -> Path:
    """Writes the project's files; `keys` replace those of the project file."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "shop.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.execute("create table orders (id integer primary key, customer, status, cents, changed_at)")
        database.executemany("insert into orders values (?, ?, ?, ?, '')", ORDERS)
    url = "sqlite:///{trial_dir}/shop.db"
    readers = {
        "status of {id}": {"sql": "select status from orders where id = :id", "url": url},
        "orders": {"sql": "select id, status from orders", "url": url},
    }
    config = {
        "version": 1,
        "servers": {"shop": {"python": "./shop.py:make"}},
        "environment": {"files": {"shop.db": "{trial_dir}/shop.db"}, "readers": readers},
        "models": ["scripted:script.json"],
        "tasks": ["tasks.json"],
        "trials": 1,
    }
    files = {
        "mcptrials.yaml": config | keys,
        "tasks.json": tasks,
        "script.json": {"tasks": script or {}, "default": {"steps": []}},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value), "utf-8")
    (folder / "shop.py").write_text(SERVER, "utf-8")
    return folder


def shop(
    folder: Path, tasks: Sequence[Mapping[str, Any]], script: Mapping[str, Any] | None = None, **keys: Any
) -> Project:
    return Project.load(write_shop(folder, tasks, script, **keys))


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def task(
    task_id: str, graders: Sequence[Any], answer: str | None, *calls: Mapping[str, Any], **keys: Any
) -> dict[str, Any]:
    """A task with its reference."""
    reference = {"answer": answer, "calls": list(calls)}
    return {"id": task_id, "prompt": f"Do {task_id}.", "graders": list(graders), "reference": reference, **keys}


def plays(answer: str | None, *calls: Mapping[str, Any]) -> dict[str, Any]:
    """A script that makes all its calls in one turn, then answers."""
    steps = [{"calls": list(calls)}] if calls else []
    return {"steps": [*steps, {"answer": answer} if answer is not None else {}]}
