"""Runs tasks now or at a time, one at a time for a key, and tells who waits for results."""
