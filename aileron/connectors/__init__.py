"""Talks to one service each; found by registry, declared by interface or by file."""
