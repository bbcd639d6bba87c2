"""The agents that can be launched, by name."""

from __future__ import annotations

from collections.abc import Mapping

from .claude import Claude
from .codex import Codex
from .goose import Goose
from .iagent import IAgent
from .opencode import OpenCode
from .pi import Pi

AGENTS: Mapping[str, IAgent] = {agent.name: agent for agent in (Claude(), OpenCode(), Codex(), Goose(), Pi())}
"""Each agent is one module; this is the only other place that names it."""

__all__ = ["AGENTS"]
