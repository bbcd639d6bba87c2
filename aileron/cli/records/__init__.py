"""The commands for past runs and sessions, and the audit record."""
