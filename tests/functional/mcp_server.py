"""A real MCP server over HTTP, of the SDK's own parts, run as a program with a port, a description and a log."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server

TOKEN = "mcp-canary-88213"


def tools(description: str) -> list[types.Tool]:
    """Its tools: one that writes, of which the description is said, and one that reads."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"title": {"type": "string", "description": "What it is about"}, "teamId": {"type": "integer"}},
        "required": ["title"],
    }
    hints = types.ToolAnnotations(read_only_hint=True)
    return [
        types.Tool(name="create_issue", description=description, input_schema=schema),
        types.Tool(
            name="search", description="Searches the issues.", input_schema={"type": "object"}, annotations=hints
        ),
    ]


def serve(port: int, description: str, log: Path) -> None:
    """Serve until it is killed; each call is a line of the log, with the credential that it came with."""

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools(description))

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        headers: Mapping[str, str] = getattr(context.request, "headers", {})
        line = {"tool": params.name, "arguments": params.arguments, "token": headers.get("authorization")}
        with log.open("a", encoding="utf-8") as end:
            end.write(json.dumps(line) + "\n")
        text = f"Done: {json.dumps(params.arguments)} by {headers.get('authorization')}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server = Server("tracker", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(host="")  # it is asked by other names of a host than this machine's, too
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
