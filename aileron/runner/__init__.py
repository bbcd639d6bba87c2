"""The chokepoint: lifecycle, approvals, executor, retry, digest, policy.

Enter by L{build}; nothing else of this room is for others.
"""

from ._build import Collaborators, build
from ._runner import Runner

__all__ = ["Collaborators", "Runner", "build"]
