"""C{aileron-mcp}: the daemon's actions as MCP tools, on standard input and output.

Importing it loads nothing, so that a signal during the slow imports finds its handler in place.
"""

from ._entry import main

__all__ = ["main"]
