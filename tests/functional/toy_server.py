"""A stdio MCP server with one tool, ``ship_update``, to show that the kit's agent and model work together."""

import os

from mcp.server import MCPServer

server = MCPServer("toy")


@server.tool()
def ship_update(channel: str, summary: str) -> str:
    """Tell a channel that something was shipped."""
    return f"{os.environ.get('TOY_MARK', 'no mark')}: pending, approval_id=apr_{len(summary)}, for {channel}"


@server.tool()
def check_action_status(approval_id: str) -> str:
    """Tell how an approval stands."""
    return f"{approval_id}: completed"


if __name__ == "__main__":
    server.run()
