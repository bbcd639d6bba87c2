"""The agents that can be launched: each is one module or package here, and nothing else names it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from aileron.launch.iagent import IAgent


def find_agents() -> Mapping[str, IAgent]:
    """The agents by name: what each module of this package has as C{AGENT}."""
    modules = (import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
    agents: tuple[IAgent, ...] = tuple(module.AGENT for module in modules)
    return {agent.name: agent for agent in agents}
