"""What the daemon may do and by what: actions, connectors, trust, grants, settings."""
