"""Runs an agent in a session of its own, with its tools registered and nothing of the user's touched."""

from ._agents import AGENTS, IAgent, McpServer
from ._launch import DaemonFacts, Launcher
from ._plan import Plan, Programs, find_programs, plan
from ._signals import OSSignals, Signals

__all__ = [
    "AGENTS",
    "DaemonFacts",
    "IAgent",
    "Launcher",
    "McpServer",
    "OSSignals",
    "Plan",
    "Programs",
    "Signals",
    "find_programs",
    "plan",
]
