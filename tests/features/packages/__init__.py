"""Of the room ``packages``."""
