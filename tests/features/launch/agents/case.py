"""A user who launches one agent."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.agent import Agent
from aileron.features.launch.agents import find_agents
from aileron.features.launch.registration import (
    GatewayAccess,
    Invocation,
    McpServer,
    PromptAccess,
    Registration,
    Upstream,
    WakeAccess,
)
from aileron.model.errors import InvalidRequest

URL, TOKEN, KEY = "http://127.0.0.1:9", "ail_a_secret", "ail_g_secret"
SERVER = McpServer("/opt/bin/aileron-mcp", {"AILERON_URL": URL, "AILERON_TOKEN": TOKEN})


class AgentCase(SynchronousTestCase):
    """A home, a project in it, and a gateway that may know a vendor's key.

    :cvar name: the agent's.
    :cvar server: the tool server that it is to start.
    :ivar through: whether its LLM traffic may go through the gateway.
    """

    name: ClassVar[str]
    server: ClassVar[McpServer] = SERVER

    def setUp(self) -> None:
        """A user who has set nothing."""
        # Not where trial would have it, which may lie in a repository.
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = Path(directory.name)
        self.project = self.home / "project"
        self.project.mkdir()
        self.through = True
        self.upstreams = {
            "openai": Upstream("https://api.openai.com", prefix="/openai"),
            "anthropic": Upstream("https://api.anthropic.com"),
        }

    @property
    def agent(self) -> Agent:
        """The agent."""
        return find_agents()[self.name]

    def write(self, name: str, value: Any) -> Path:
        """Have a file below the home say that."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def invocation(self, *arguments: str, **environment: str) -> Invocation:
        """A launch in the project."""
        return Invocation(arguments, {"HOME": str(self.home), **environment}, str(self.project))

    def registered(self, *arguments: str, **environment: str) -> Registration:
        """What comes of a launch."""
        gateway = GatewayAccess(URL, KEY, self.upstreams) if self.through else None
        return self.agent.prepare(self.invocation(*arguments, **environment))(self.server, gateway, "/private")

    def hooked(self, *arguments: str, asks: bool = False, checks: bool = False, **environment: str) -> Registration:
        """What comes of a launch whose daemon lists permission prompts."""
        gateway = GatewayAccess(URL, KEY, self.upstreams) if self.through else None
        register = self.agent.prepare(self.invocation(*arguments, **environment))
        return register(self.server, gateway, "/private", PromptAccess(URL, asks, checks))

    def woken(
        self, *arguments: str, resumes: bool = False, prompts: PromptAccess | None = None, **environment: str
    ) -> Registration:
        """What comes of a launch whose daemon wakes agents."""
        gateway = GatewayAccess(URL, KEY, self.upstreams) if self.through else None
        register = self.agent.prepare(self.invocation(*arguments, **environment))
        return register(self.server, gateway, "/private", prompts, WakeAccess(URL, resumes))

    def refused(self, **environment: str) -> str:
        """Why there is no launch."""
        return str(self.assertRaises(InvalidRequest, self.agent.prepare, self.invocation(**environment)))

    def assert_told(self, registration: Registration, *words: str) -> None:
        """One line says that something is left alone, and these words."""
        (line,) = [note for note in registration.notes if "not use the gateway" in note]
        for word in words:
            self.assertIn(word, line)
