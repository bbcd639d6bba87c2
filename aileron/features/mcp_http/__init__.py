"""MCP over HTTP: the daemon serves the tools of C{aileron-mcp} at C{/mcp} of its agent site."""
