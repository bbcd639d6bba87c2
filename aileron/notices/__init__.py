"""Tells the operator what waits for them, by the channels that they have configured.

Enter by L{build}; the values are in L{aileron.values}.
"""

from ._build import Collaborators, build
from ._notifier import Notifier
from ._posting import post

__all__ = ["Collaborators", "Notifier", "build", "post"]
