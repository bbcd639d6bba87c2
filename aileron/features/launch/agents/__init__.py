"""The agents that can be launched: one module each, found by its presence in this package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from aileron.features.launch.agent import Agent
from aileron.features.launch.servers import EDITORS, ServerSource


def find_agents() -> Mapping[str, Agent]:
    """Return the agents by name: the C{AGENT} of each module of this package."""
    modules = (import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
    agents: tuple[Agent, ...] = tuple(module.AGENT for module in modules)
    return {agent.name: agent for agent in agents}


def find_server_sources() -> Mapping[str, tuple[ServerSource, ...]]:
    """Return the sources of MCP servers of each agent and editor, by name."""
    return {**{name: agent.servers for name, agent in find_agents().items() if agent.servers}, **EDITORS}
