"""Connectors to a declared local program: its arguments one by one, no shell, and a sandbox where there is one."""

from ._connector import CommandConnector
from ._kind import COMMAND
from ._spec import CommandSpec, read_command

__all__ = ["COMMAND", "CommandConnector", "CommandSpec", "read_command"]
