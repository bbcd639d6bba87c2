"""Checks of a whole installation, which change nothing."""
