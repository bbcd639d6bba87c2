"""The C{aileron} command: one group a file, each loaded only when it is asked for."""

from ._entry import main

__all__ = ["main"]
