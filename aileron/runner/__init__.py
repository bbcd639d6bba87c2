"""Takes every call from its arrival to its effect: approvals, limits, execution, retries, unknown outcomes.

Enter by L{build}, and before anything is written to the vault by L{remember_older}; nothing else of this room is for
others.
"""

from .build import Collaborators, Runner, build
from .recovery import remember_older

__all__ = ["Collaborators", "Runner", "build", "remember_older"]
