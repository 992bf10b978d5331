"""A stdio MCP server without dependencies, so that it starts in milliseconds.

Tools: `add` two integers, `say` a text back, `tell` an environment variable in a spelling.
"""

import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote


def tool(name: str, kind: str, *properties: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {each: {"type": kind} for each in properties}, "required": properties}
    hints = {"readOnlyHint": "--writes" not in sys.argv}
    return {"name": name, "description": f"{name}.", "annotations": hints, "inputSchema": schema}


TOOLS = [tool("add", "integer", "a", "b"), tool("say", "string", "text"), tool("tell", "string", "name", "spelling")]
INFO = '{"name": "tiny", "version": "1.0"}'
SPELLINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda value: value,
    "base64": lambda value: base64.b64encode(f"x{value}y".encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "url": lambda value: quote(value, safe=""),
    "json": json.dumps,
    "letters": lambda value: "".join(f"%{byte:02x}" for byte in value.encode()),
    "dump": lambda value: value.encode().hex(" "),
    "lines": lambda value: base64.encodebytes(b"env" * 20 + value.encode()).decode(),
    "noise": lambda value: "fine",
}


def call(name: str, given: dict[str, Any]) -> str:
    if name == "add":
        return str(given["a"] + given["b"])
    if name == "say":
        return str(given["text"])
    spelled = SPELLINGS[given["spelling"]](os.environ[given["name"]])
    sys.stderr.write(f"told {spelled}\n")
    if given["spelling"] == "noise":
        secret = os.environ[given["name"]]
        sys.stdout.write("x" * 280 + secret + "\n")  # no JSON, and longer than what is shown of it
        sys.stderr.write("x" * (8192 - 30) + secret + "x" * (1 << 16) + secret + "x" * (24576 - len(secret)))
    return f"it is {spelled}."


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            version, info = params["protocolVersion"], json.loads(os.environ.get("TINY_INFO", INFO))
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return {"content": [{"type": "text", "text": call(params["name"], params.get("arguments") or {})}]}
        case "ping":
            return {}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        error = {"error": {"code": -32601, "message": "unknown method"}}
        found = error if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **found}) + "\n")
        sys.stdout.flush()
