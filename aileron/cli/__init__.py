"""The C{aileron} command: one group a file, each loaded only when needed."""

from ._entry import main

__all__ = ["main"]
