"""The daemon's ``/mcp`` before judges that nobody here wrote: MCP's conformance suite, and its Inspector."""
