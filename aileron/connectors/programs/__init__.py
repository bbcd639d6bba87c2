"""Programs on this machine: their environment, sandbox and processes, shared by the kinds that run programs."""

from .enclosure import Confinement, Enclose, Enclosure
from .environment import READERS, ProgramEnvironment
from .format import surroundings
from .process import Launch, Program

__all__ = [
    "READERS",
    "Confinement",
    "Enclose",
    "Enclosure",
    "Launch",
    "Program",
    "ProgramEnvironment",
    "surroundings",
]
