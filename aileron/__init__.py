"""Aileron lets a coding agent act in the world without holding a key, and only as its user approved."""

__version__ = "0.2.0"
