"""Connectors to a declared local program: its arguments one by one, no shell, and a sandbox where there is one."""

from ._connector import CommandConnector
from ._environment import Enclose, Enclosure, ProgramEnvironment
from ._process import Launch, Program
from ._spec import CommandSpec, read_command

__all__ = [
    "CommandConnector",
    "CommandSpec",
    "Enclose",
    "Enclosure",
    "Launch",
    "Program",
    "ProgramEnvironment",
    "read_command",
]
