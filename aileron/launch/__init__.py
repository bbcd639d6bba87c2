"""Starts an agent under Aileron without touching the user's own configuration."""
