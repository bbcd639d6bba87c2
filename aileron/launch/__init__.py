"""Runs an agent in a session of its own, with its tools registered and nothing of the user's touched."""

from ._bell import Bell, is_multiplexed
from ._launch import DaemonFacts, Enclose, Launcher, foresee
from ._plan import Plan, Programs, find_programs, plan
from ._shown import Described
from ._signals import OSSignals, Signals
from .agents.agents import AGENTS
from .agents.iagent import Gateway, IAgent, Invocation, McpServer, Registration, Upstream
from .sandbox import Sandbox, SandboxLayout, SandboxProject, find_sandbox

__all__ = [
    "AGENTS",
    "Bell",
    "DaemonFacts",
    "Described",
    "Enclose",
    "Gateway",
    "IAgent",
    "Invocation",
    "Launcher",
    "McpServer",
    "OSSignals",
    "Plan",
    "Programs",
    "Registration",
    "Sandbox",
    "SandboxLayout",
    "SandboxProject",
    "Signals",
    "Upstream",
    "find_programs",
    "find_sandbox",
    "foresee",
    "is_multiplexed",
    "plan",
]
