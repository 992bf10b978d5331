"""A stdio MCP server that lists what a file says: `listing_server.py TOOLS.json [PAGE_SIZE] [WORD ...]`.

It answers a known tool with the arguments it got, and an unknown one or wrong arguments as tool errors. Words:
`accepting` (answers everything), `changing` and `shuffling` (the second list is another, or in another order),
`once` (never answers a second time), `picky` (refuses arguments that fit the schema).
"""

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = json.loads(Path(sys.argv[1]).read_text("utf-8"))
SIZE = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
WORDS = sys.argv[3:]
lists = 0


def listing(cursor: str | None) -> dict[str, Any]:
    global lists  # noqa: PLW0603 - what makes the second list another
    lists += cursor is None
    second = lists > 1
    tools = TOOLS[1:] if second and "changing" in WORDS else TOOLS[::-1] if second and "shuffling" in WORDS else TOOLS
    start = int(cursor or 0)
    more = {"nextCursor": str(start + SIZE)} if start + SIZE < len(tools) else {}
    return {"tools": tools[start : start + SIZE], **more}


def call(name: str, given: dict[str, Any]) -> dict[str, Any]:
    tool = next((each for each in TOOLS if isinstance(each, dict) and each.get("name") == name), None)
    wrong = tool is None or any(key not in given for key in tool["inputSchema"].get("required", []))
    wrong = wrong or any(isinstance(each, dict) for each in given.values()) or "picky" in WORDS
    failed = wrong and "accepting" not in WORDS
    text = "Invalid arguments" if failed else json.dumps(given)
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "listing", "version": "1.0"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return listing(params.get("cursor"))
    return call(params["name"], params.get("arguments") or {}) if method == "tools/call" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        found = answer(message["method"], message.get("params") or {})
        if lists > 1 and "once" in WORDS:
            continue
        outcome = {"result": found} if found is not None else {"error": {"code": -32601, "message": "unknown method"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        sys.stdout.flush()
