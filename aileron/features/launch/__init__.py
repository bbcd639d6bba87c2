"""Launches an agent in a session of its own, with its tools registered and no file of the user's changed."""
