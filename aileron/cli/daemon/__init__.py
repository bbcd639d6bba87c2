"""The daemon as a process: start, status and stop."""
