"""Connectors to a declared local program: its arguments one by one, no shell, and a sandbox where there is one."""

from ._connector import CommandConnector
from ._environment import (
    PATH,
    VARIABLE,
    Enclose,
    Enclosure,
    ProgramEnvironment,
    read_environment,
    read_program_credential,
)
from ._process import Launch, Program
from ._spec import CommandSpec, read_command

__all__ = [
    "PATH",
    "VARIABLE",
    "CommandConnector",
    "CommandSpec",
    "Enclose",
    "Enclosure",
    "Launch",
    "Program",
    "ProgramEnvironment",
    "read_command",
    "read_environment",
    "read_program_credential",
]
