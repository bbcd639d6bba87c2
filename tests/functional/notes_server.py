"""A local MCP server of ours, run by the tests as a program: it keeps notes in its working directory."""

import os
import sys
from pathlib import Path

from mcp.server import MCPServer

NOTES = "notes.txt"

server = MCPServer("notes")


@server.tool()
def add_note(text: str) -> str:
    """Adds a note."""
    print(f"noted with {os.environ['NOTES_TOKEN']}", file=sys.stderr, flush=True)
    if text == "die":
        os._exit(9)
    with open(NOTES, "a") as file:
        file.write(f"{text}\n")
    return f"noted by {os.getpid()}"


@server.tool()
def list_notes() -> str:
    """Lists the notes."""
    return Path(NOTES).read_text() if Path(NOTES).exists() else ""


if __name__ == "__main__":
    server.run()
