"""Programs of this machine: their surroundings, their sandbox, and their processes, for each kind that runs some."""

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
