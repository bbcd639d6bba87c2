"""The runner takes every call from its arrival to its effect: approvals, limits, execution, retries, unknown outcomes.

Call L{remember_older} before anything is written to the vault, then L{build}. Other packages use nothing else of this
one.
"""

from .build import Collaborators, OtherDaemons, Runner, build
from .recovery import remember_older
from .tool_reads import ToolReads

__all__ = ["Collaborators", "OtherDaemons", "Runner", "ToolReads", "build", "remember_older"]
