"""Of the connectors."""
