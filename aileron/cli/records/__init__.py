"""The commands for what was, and is on record."""
