"""Runs an agent in a sandbox (Linux, bubblewrap), where it can see, write and reach what it needs to work."""

from ._layout import SandboxLayout, installed_programs
from ._program import build_program_sandbox
from ._project import SandboxProject
from ._sandbox import Sandbox, find_sandbox
from ._way_out import WayOut

__all__ = [
    "Sandbox",
    "SandboxLayout",
    "SandboxProject",
    "WayOut",
    "build_program_sandbox",
    "find_sandbox",
    "installed_programs",
]
