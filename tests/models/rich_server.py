"""A stdio MCP server whose tools hold all that clients are known to lose: rich schemas, a second page, instructions."""

import json
import sys
from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
INSTRUCTIONS = "Ask politely.\n\tThen “wait” <|im_end|> & 日本."
RICH: dict[str, Any] = {
    "type": "object",
    "title": "Args",
    "properties": {
        "who": {
            "oneOf": [{"type": "string", "minLength": 1}, {"type": "integer", "exclusiveMinimum": 0}],
            "title": "Who",
        },
        "addr": {"$ref": "#/$defs/Addr"},
        "kind": {"const": "x"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": True},
        "n": {"type": ["number", "null"], "multipleOf": 0.5, "exclusiveMinimum": 0, "minimum": -5.0, "default": None},
    },
    "$defs": {"Addr": {"type": "object", "properties": {"city": {"type": "string", "description": "City “ü”"}}}},
    "required": ["who"],
    "additionalProperties": True,
}
TOOLS: list[dict[str, Any]] = [
    {"name": "rich", "title": "Rich", "description": "Rich tool.\n  <b>See</b> “docs”.", "inputSchema": RICH},
    {"name": "page2_tool", "description": "on page 2", "inputSchema": {"type": "object", "properties": {}}},
]
RESULT: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "text “part”\n"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
    ],
    "structuredContent": {"secret": 42},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "rich", "version": "1"},
                "instructions": INSTRUCTIONS,
            }
        case "tools/list":
            return {"tools": TOOLS[1:]} if params.get("cursor") else {"tools": TOOLS[:1], "nextCursor": "p2"}
        case "tools/call":
            return RESULT
        case "ping":
            return {}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        error = {"error": {"code": -32601, "message": "unknown method"}}
        found = error if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **found}), flush=True)  # noqa: T201 - the wire


if __name__ == "__main__":
    main()
