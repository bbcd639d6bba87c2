"""The kinds of connectors."""
