"""Connectors to a declared local program: its arguments one by one, no shell, and a sandbox where there is one."""

from ._connector import CommandConnector, Enclose, Enclosure
from ._spec import CommandSpec, read_command

__all__ = ["CommandConnector", "CommandSpec", "Enclose", "Enclosure", "read_command"]
