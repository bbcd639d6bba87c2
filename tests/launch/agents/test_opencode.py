"""OpenCode's registration."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.errors import InvalidRequest
from aileron.launch import IAgent, Invocation, McpServer, find_agents

SERVER = McpServer("/opt/bin/aileron-mcp", {"AILERON_URL": "http://127.0.0.1:9", "AILERON_TOKEN": "ail_a_x"})


def invocation(theirs: str | None) -> Invocation:
    """A launch by a user who has set this."""
    environment = {} if theirs is None else {"OPENCODE_CONFIG_CONTENT": theirs}
    return Invocation((), {"HOME": "/nowhere", **environment}, "/nowhere")


class OpenCodeTests(SynchronousTestCase):
    """Our server is added and everything of the user's is kept."""

    def merged(self, theirs: str | None) -> Any:
        """The configuration that comes of the user's own."""
        variables = find_agents()["opencode"].prepare(invocation(theirs))(SERVER, None, "/private").variables
        self.assertEqual(list(variables), ["OPENCODE_CONFIG_CONTENT"])
        return json.loads(variables["OPENCODE_CONFIG_CONTENT"])

    def test_interface(self) -> None:
        """Every agent keeps the interface, under its own name."""
        for name, agent in find_agents().items():
            verifyObject(IAgent, agent)
            self.assertEqual(agent.name, name)

    def test_alone(self) -> None:
        """Without a configuration of the user's only our server is set."""
        entry = {
            "type": "local",
            "command": ["/opt/bin/aileron-mcp"],
            "enabled": True,
            "timeout": 3_600_000,
            "environment": {"AILERON_URL": "http://127.0.0.1:9", "AILERON_TOKEN": "ail_a_x"},
        }
        self.assertEqual(self.merged(None), {"mcp": {"aileron": entry}})
        self.assertEqual(self.merged(" \n"), {"mcp": {"aileron": entry}})

    def test_kept(self) -> None:
        """The user's servers and settings stay, comments and all being legal."""
        merged = self.merged('{"model": "x/y", /* mine */ "mcp": {"mine": {"type": "remote", "url": "http://m"},}}')
        self.assertEqual(merged["model"], "x/y")
        self.assertEqual(merged["mcp"]["mine"], {"type": "remote", "url": "http://m"})
        self.assertEqual(merged["mcp"]["aileron"]["command"], ["/opt/bin/aileron-mcp"])

    def test_stale_entry(self) -> None:
        """An entry of our name from an earlier launch is replaced whole."""
        merged = self.merged(
            '{"mcp": {"aileron": {"enabled": false, "environment": {"AILERON_TOKEN": "old"}, "x": 1}}}'
        )
        self.assertNotIn("x", merged["mcp"]["aileron"])
        self.assertEqual(merged["mcp"]["aileron"]["environment"]["AILERON_TOKEN"], "ail_a_x")

    def test_unreadable(self) -> None:
        """What cannot be added to is refused before anything starts, and not repeated in the message."""
        for theirs in ['{"key": "hunter2"', '["hunter2"]', '{"mcp": "hunter2"}', "hunter2"]:
            caught = self.assertRaises(InvalidRequest, find_agents()["opencode"].prepare, invocation(theirs))
            self.assertIn("OPENCODE_CONFIG_CONTENT", str(caught))
            self.assertNotIn("hunter2", str(caught))

    def test_token_hidden(self) -> None:
        """No repr shows the token."""
        self.assertNotIn("ail_a_x", repr(SERVER))
