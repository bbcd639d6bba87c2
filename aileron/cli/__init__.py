"""The C{aileron} command: one group a file, each loaded only when it is asked for."""

from ._main import main

__all__ = ["main"]
