"""The MCP server that an agent starts: one tool for each enabled action."""
