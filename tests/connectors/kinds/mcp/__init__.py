"""The kind for MCP servers."""
