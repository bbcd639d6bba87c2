"""Moves the MCP servers that an agent has behind Aileron, and their secrets into the vault."""
