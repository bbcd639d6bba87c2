"""Runs an agent in a sandbox (Linux, bubblewrap), where it can see, write and reach what it needs to work."""

from ._enclosure import Sandbox
from ._layout import SandboxLayout
from ._probe import find_sandbox
from ._project import SandboxProject

__all__ = ["Sandbox", "SandboxLayout", "SandboxProject", "find_sandbox"]
