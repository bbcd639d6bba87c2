"""``/mcp`` and what carries it before judges that nobody here wrote: MCP's conformance suite, and its Inspector."""
