"""The daemon's actions as MCP tools: C{aileron-mcp} on standard input and output, and the daemon's own C{/mcp}.

Importing it loads nothing, so that a signal during the slow imports finds its handler in place, and a daemon whose
agents start their own server does without the SDK.
"""

from ._entry import main, over_http

__all__ = ["main", "over_http"]
