"""Runs whose outcome is unknown: late answers, looks for the effect, what is found, and doing it again."""
