"""What config.yaml says of MCP over HTTP."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._config import read_config
from aileron.daemon._nodes import NotConfig
from aileron.values import McpSettings


class McpConfigTests(SynchronousTestCase):
    """The part C{mcp}."""

    def refused(self, text: str, line: int, word: str) -> None:
        """Assert that a text is refused, with the line and a word of the reason."""
        error = self.assertRaises(NotConfig, read_config, text)
        self.assertEqual(error.line, line, error)
        self.assertIn(word, error.problem)

    def test_nothing(self) -> None:
        """Where nothing is said it is off."""
        self.assertIsNone(read_config("").mcp)
        self.assertFalse(McpSettings().http)

    def test_whole(self) -> None:
        """Everything is read."""
        found = read_config("mcp: {http: true, sessions: 3, idle_seconds: 60, listed_actions: 7}\n").mcp
        self.assertEqual(found, McpSettings(http=True, sessions=3, idle_seconds=60, listed_actions=7))

    def test_bad(self) -> None:
        """Another type, a number out of its bounds and an unknown key are refused with their line."""
        self.refused("mcp: true\n", 1, "mapping")
        self.refused("mcp:\n  http: yes please\n", 2, "mcp.http")
        self.refused("mcp:\n  sessions: 0\n", 2, "mcp.sessions")
        self.refused("mcp:\n  idle_seconds: 86401\n", 2, "mcp.idle_seconds")
        self.refused("mcp:\n  port: 1\n", 2, "unknown key")
