"""Finds out what became of runs whose outcome is unknown, and puts them up to be done again."""
