"""A stdio MCP server with one tool and no dependency: what remains of a trial's cost is the evaluator's."""

import json
import sys
from typing import Any

ADD = {
    "name": "add",
    "description": "Add two integers.",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "bench-min", "version": "1"}
            version = params.get("protocolVersion", "2025-06-18")
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [ADD]}
        case "tools/call":
            given = params.get("arguments") or {}
            return {"content": [{"type": "text", "text": str(given.get("a", 0) + given.get("b", 0))}]}
        case "ping":
            return {}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    found = result(message["method"], message.get("params") or {})
    unknown = {"error": {"code": -32601, "message": f"no method {message['method']}"}}
    answer = unknown if found is None else {"result": found}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
