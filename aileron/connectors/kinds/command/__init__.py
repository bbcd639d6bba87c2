"""Connectors to a declared local program: its arguments one by one, no shell, and a sandbox where there is one."""

from ._connector import CommandConnector
from ._enclosure import Confinement, Enclose, Enclosure
from ._environment import READERS, ProgramEnvironment
from ._format import surroundings
from ._kind import COMMAND
from ._process import Launch, Program
from ._spec import CommandSpec, read_command

__all__ = [
    "COMMAND",
    "READERS",
    "CommandConnector",
    "CommandSpec",
    "Confinement",
    "Enclose",
    "Enclosure",
    "Launch",
    "Program",
    "ProgramEnvironment",
    "read_command",
    "surroundings",
]
