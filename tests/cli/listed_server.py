"""A stdio MCP server that lists the tools of a JSON file, two a page, with `$NAME` in descriptions filled in."""

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOLS = json.loads(Path(sys.argv[1]).read_text())


def page(params: dict[str, Any]) -> dict[str, Any]:
    start = int(params.get("cursor", 0))
    tools = [each | {"description": os.path.expandvars(each.get("description", ""))} for each in TOOLS]
    more = {"nextCursor": str(start + 2)} if start + 2 < len(TOOLS) else {}
    return {"tools": tools[start : start + 2], **more}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "listed", "version": "1.0"}
            version = params["protocolVersion"]
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": info,
                "instructions": "Be.",
            }
        case "tools/list":
            return page(params)
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        found: dict[str, Any] = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **found}) + "\n")
        sys.stdout.flush()
