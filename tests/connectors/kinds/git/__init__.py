"""The kind for git repositories."""
