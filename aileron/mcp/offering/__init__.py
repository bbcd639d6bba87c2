"""Offers the daemon's actions to an MCP client: as tools, by a search, as documents and in prompts."""
