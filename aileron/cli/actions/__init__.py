"""Actions and what they go by: files, connectors, trust."""
