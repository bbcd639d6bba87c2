"""Runs an agent in a session of its own, with its tools registered and nothing of the user's touched."""

from ._bell import Bell, is_multiplexed
from ._launch import Enclose, Launcher
from ._plan import DaemonFacts, LaunchPlan, Preparation, Programs, find_programs, prepare
from ._preview import LaunchPreview, preview_launch
from .agent import Agent
from .agents import find_agents, find_server_sources
from .in_band import in_band_agent
from .registration import GatewayAccess, Invocation, McpServer, Registration, Upstream
from .runners import PackageRun
from .sandbox import (
    Sandbox,
    SandboxLayout,
    SandboxProject,
    WayOut,
    build_program_sandbox,
    find_sandbox,
    installed_programs,
)
from .servers import MASK, ServerEntry, ServerSecret, ServerSettings, read_servers

__all__ = [
    "MASK",
    "Agent",
    "Bell",
    "DaemonFacts",
    "Enclose",
    "GatewayAccess",
    "Invocation",
    "LaunchPlan",
    "LaunchPreview",
    "Launcher",
    "McpServer",
    "PackageRun",
    "Preparation",
    "Programs",
    "Registration",
    "Sandbox",
    "SandboxLayout",
    "SandboxProject",
    "ServerEntry",
    "ServerSecret",
    "ServerSettings",
    "Upstream",
    "WayOut",
    "build_program_sandbox",
    "find_agents",
    "find_programs",
    "find_sandbox",
    "find_server_sources",
    "in_band_agent",
    "installed_programs",
    "is_multiplexed",
    "prepare",
    "preview_launch",
    "read_servers",
]
