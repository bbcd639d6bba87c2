"""MCP over streamable HTTP: the SDK's own transport behind the daemon's guard, an agent at a time."""
