"""The kind for local programs."""
