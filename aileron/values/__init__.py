"""The frozen values that travel between rooms."""
