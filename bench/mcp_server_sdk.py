"""The same tool by the official Python SDK: what most servers cost to start."""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("bench-sdk")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


server.run()
