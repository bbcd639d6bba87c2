"""In-band mode: offers actions to a model inside its own traffic, for clients that cannot speak MCP."""
