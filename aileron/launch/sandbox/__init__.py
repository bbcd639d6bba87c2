"""Walls around an agent (Linux, bubblewrap): what it may see, write and reach is what it needs to work."""

from ._enclosure import Sandbox
from ._probe import find_sandbox
from ._sockets import sockets
from ._walls import Walls

__all__ = ["Sandbox", "Walls", "find_sandbox", "sockets"]
