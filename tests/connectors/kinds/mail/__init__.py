"""The kind for mail accounts."""
