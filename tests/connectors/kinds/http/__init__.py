"""The HTTP kind."""
