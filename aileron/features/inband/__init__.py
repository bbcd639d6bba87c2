"""In-band mode: offers actions inside LLM traffic, to clients that cannot speak MCP."""
