"""Command connectors: run a declared local program with separate arguments and no shell, in a sandbox if possible."""

from ._connector import CommandConnector
from ._kind import COMMAND
from ._spec import CommandSpec, read_command

__all__ = ["COMMAND", "CommandConnector", "CommandSpec", "read_command"]
