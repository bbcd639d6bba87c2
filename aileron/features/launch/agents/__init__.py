"""The agents that can be launched: each is one module or package here, and nothing else names it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from aileron.features.launch.agent import Agent
from aileron.features.launch.servers import EDITORS, ServerSource


def find_agents() -> Mapping[str, Agent]:
    """Return the agents by name: what each module of this package has as C{AGENT}."""
    modules = (import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
    agents: tuple[Agent, ...] = tuple(module.AGENT for module in modules)
    return {agent.name: agent for agent in agents}


def find_server_sources() -> Mapping[str, tuple[ServerSource, ...]]:
    """Return where each agent keeps the MCP servers that its user has set up; editors are agents as well."""
    return {**{name: agent.servers for name, agent in find_agents().items() if agent.servers}, **EDITORS}
