"""The daemon's HTTP client; importing it loads no Klein."""
